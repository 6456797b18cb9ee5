<?php
// Closes orders as they come due, up to ten at a time.
function post(string $path, array $body): ?array
{
    $answer = @file_get_contents(
        (getenv('DUEQ_URL') ?: 'http://127.0.0.1:7700') . $path,
        context: stream_context_create(['http' => [
            'method' => 'POST',
            'header' => ['Content-Type: application/json', 'Authorization: Bearer ' . getenv('DUEQ_TOKEN')],
            'content' => json_encode((object) $body),
            'ignore_errors' => true, // an error has a body, too
            'timeout' => 30,
        ]]),
    );
    if ($answer === false) {
        throw new RuntimeException('the service cannot be reached');
    }
    $result = json_decode($answer, true);
    if (!preg_match('/^HTTP\S+ 2/', $http_response_header[0])) {
        throw new RuntimeException($result['detail'] ?? $http_response_header[0]);
    }
    return $result;
}

function close_order(array $event): void
{
    $order = $event['body']['order'] ?? throw new RuntimeException('no order in it');
    echo "closing order $order\n";
}

function handle(array $event): void
{
    try {
        close_order($event);
        $verb = 'ack';
        $terms = [];
    } catch (Throwable $failure) {
        $verb = 'retry';
        $terms = ['error' => $failure->getMessage()];
    }
    post("/v1/deliveries/{$event['receipt']}/$verb", $terms);
}

while (true) {
    try {
        $claimed = post('/v1/topics/order.close/claim', ['max' => 10, 'wait' => '20s', 'visibility' => '1m']);
        array_map('handle', $claimed['events']);
    } catch (RuntimeException $error) { // what is not settled comes again
        fwrite(STDERR, $error->getMessage() . "\n");
        sleep(1);
    }
}
