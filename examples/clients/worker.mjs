// Closes orders as they come due, up to ten at a time.
import { setTimeout as sleep } from "node:timers/promises";

const url = process.env.DUEQ_URL ?? "http://127.0.0.1:7700";

async function post(path, body) {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${process.env.DUEQ_TOKEN ?? ""}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (answer.status === 204) return;
  const result = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status}: ${result.detail}`);
  return result;
}

async function closeOrder(event) {
  if (event.body?.order === undefined) throw new Error("no order in it");
  console.log(`closing order ${event.body.order}`);
}

async function handle(event) {
  const failure = await closeOrder(event).then(() => null, (error) => error);
  const settled = failure
    ? post(`/v1/deliveries/${event.receipt}/retry`, { error: String(failure) })
    : post(`/v1/deliveries/${event.receipt}/ack`, {});
  await settled.catch((error) => console.error("not settled, the event comes again:", error));
}

for (;;) {
  try {
    const { events } = await post("/v1/topics/order.close/claim", { max: 10, wait: "20s", visibility: "1m" });
    await Promise.all(events.map(handle));
  } catch (error) {
    console.error("claim:", error);
    await sleep(1000);
  }
}
