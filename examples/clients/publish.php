<?php
// Publishes an order's closing, due in a second: php publish.php ORDER
$order = (int) $argv[1];
$event = ['id' => "order-$order", 'on_duplicate' => 'keep', 'in' => '1s', 'body' => ['order' => $order]];
$answer = file_get_contents(
    (getenv('DUEQ_URL') ?: 'http://127.0.0.1:7700') . '/v1/topics/order.close/events',
    context: stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ['Content-Type: application/json', 'Authorization: Bearer ' . getenv('DUEQ_TOKEN')],
        'content' => json_encode($event),
        'ignore_errors' => true, // an error has a body, too
        'timeout' => 30,
    ]]),
);
$result = json_decode($answer ?: '{}', true);
if (!isset($result['id'])) {
    fwrite(STDERR, ($result['detail'] ?? 'the service cannot be reached') . "\n");
    exit(1);
}
echo $result['id'], "\n";
