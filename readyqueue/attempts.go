package readyqueue

import (
	"strconv"
	"strings"
)

// maxCause is the most bytes of a cause that are kept.
const maxCause = 4096

// Attempts is what is kept of an event that failed or lost a lease.
type Attempts struct {
	Count int    // deliveries that are used up
	Done  uint64 // bit i: handler i has succeeded
	Cause string // why the last delivery failed; at most 4 KiB
}

// String is the entry in the attempts hash: "count|done in hex|cause".
func (a Attempts) String() string {
	done := ""
	if a.Done != 0 {
		done = strconv.FormatUint(a.Done, 16)
	}
	cause := a.Cause
	if len(cause) > maxCause {
		cause = strings.ToValidUTF8(cause[:maxCause-len("…")], "") + "…"
	}
	return strconv.Itoa(a.Count) + "|" + done + "|" + cause
}

// ParseAttempts reads an entry of the attempts hash; what cannot be read of it
// counts as zero.
func ParseAttempts(entry string) Attempts {
	count, rest, _ := strings.Cut(entry, "|")
	done, cause, _ := strings.Cut(rest, "|")
	var a Attempts
	a.Count, _ = strconv.Atoi(count)
	a.Done, _ = strconv.ParseUint(done, 16, 64)
	a.Cause = cause
	return a
}
