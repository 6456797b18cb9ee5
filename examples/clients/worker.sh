#!/bin/sh
# Closes orders as they come due, one at a time.
set -u
post() { # PATH JSON
	curl --silent --show-error --fail-with-body --max-time 30 "${DUEQ_URL:-http://127.0.0.1:7700}$1" \
		-H "Authorization: Bearer ${DUEQ_TOKEN:-}" -H 'Content-Type: application/json' -d "$2"
}

close_order() { # the event as JSON; an exit code other than 0 says that it failed
	case $1 in
	*'"body":{"order":'[0-9]*) echo "closing order: $1" ;;
	*) return 1 ;;
	esac
}

while :; do
	# One event at most, so that its receipt is easily found; jq would do more.
	claimed=$(post /v1/topics/order.close/claim '{"max": 1, "wait": "20s", "visibility": "1m"}') || {
		echo "claim: $claimed" >&2
		sleep 1
		continue
	}
	receipt=$(printf %s "$claimed" | sed -n 's/^{"events":\[{"receipt":"\([^"]*\)".*/\1/p')
	[ -n "$receipt" ] || continue
	if close_order "$claimed"; then
		post "/v1/deliveries/$receipt/ack" '{}'
	else
		post "/v1/deliveries/$receipt/retry" '{"error": "no order in it"}'
	fi || echo "not settled: the event comes again" >&2
done
