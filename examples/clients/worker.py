"""Closes orders as they come due, up to ten at a time."""
import json
import os
import sys
import time
import urllib.request

URL = os.environ.get("DUEQ_URL", "http://127.0.0.1:7700")


def post(path, body):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("DUEQ_TOKEN", "")}
    request = urllib.request.Request(URL + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer) if answer.status == 200 else None


def close_order(event):
    if "order" not in event.get("body", {}):
        raise ValueError("no order in it")
    print("closing order", event["body"]["order"], flush=True)


def handle(event):
    delivery = "/v1/deliveries/" + event["receipt"]
    try:
        close_order(event)
    except Exception as failure:
        post(delivery + "/retry", {"error": str(failure)})
    else:
        post(delivery + "/ack", {})


while True:
    try:
        for event in post("/v1/topics/order.close/claim", {"max": 10, "wait": "20s", "visibility": "1m"})["events"]:
            handle(event)
    except OSError as error:  # HTTP errors are among them; what is not settled comes again
        print(error, file=sys.stderr)
        time.sleep(1)
