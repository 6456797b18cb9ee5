#!/bin/sh
# Publishes an order's closing, due in a second: publish.sh ORDER
set -eu
curl --silent --show-error --fail-with-body "${DUEQ_URL:-http://127.0.0.1:7700}/v1/topics/order.close/events" \
	-H "Authorization: Bearer ${DUEQ_TOKEN:-}" -H 'Content-Type: application/json' \
	-d '{"id": "order-'"$1"'", "on_duplicate": "keep", "in": "1s", "body": {"order": '"$1"'}}'
