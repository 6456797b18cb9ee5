"""Publishes an order's closing, due in a second: python3 publish.py ORDER"""
import json
import os
import sys
import urllib.error
import urllib.request

order = int(sys.argv[1])
event = {"id": f"order-{order}", "on_duplicate": "keep", "in": "1s", "body": {"order": order}}
request = urllib.request.Request(
    os.environ.get("DUEQ_URL", "http://127.0.0.1:7700") + "/v1/topics/order.close/events",
    data=json.dumps(event).encode(),
    headers={"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("DUEQ_TOKEN", "")},
)
try:
    with urllib.request.urlopen(request, timeout=30) as answer:
        print(json.load(answer)["id"])
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code}: {json.load(error)['detail']}")
