// Command dueq shows and serves the delayed-event queue dueq.
//
// It exits with 0, 1 when it failed, 2 when it was called wrongly, and 130 when
// it was interrupted before its work was done.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// sameSignal is how long a signal that comes again counts as the same one:
// timeout(1), for one, sends it to the process and then to its group.
const sameSignal = time.Second

func main() {
	logging.Disable() // the client's own lines: what matters comes back as an error or is logged by the queue
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) }) // from then on a signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
