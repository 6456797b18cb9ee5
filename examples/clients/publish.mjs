// Publishes an order's closing, due in a second: node publish.mjs ORDER
const url = process.env.DUEQ_URL ?? "http://127.0.0.1:7700";
const order = Number(process.argv[2]);

const answer = await fetch(`${url}/v1/topics/order.close/events`, {
  method: "POST",
  headers: { "Content-Type": "application/json", Authorization: `Bearer ${process.env.DUEQ_TOKEN ?? ""}` },
  body: JSON.stringify({ id: `order-${order}`, on_duplicate: "keep", in: "1s", body: { order } }),
});
const result = await answer.json();
if (!answer.ok) throw new Error(`${answer.status}: ${result.detail}`);
console.log(result.id);
