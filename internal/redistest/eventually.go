package redistest

import (
	"testing"
	"time"
)

// patience is how long a test waits for what must happen: on a machine with
// much else to do, too.
const patience = time.Minute

// Eventually polls until ok, and fails the test if that does not come.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	end := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end:
			tb.Fatalf("it never came to this: %s", what)
		case <-tick.C:
		}
	}
}
