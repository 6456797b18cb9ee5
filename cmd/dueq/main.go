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

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // the client's own lines: what matters comes back as an error or is logged by the queue
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
