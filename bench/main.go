// Command bench measures dueq on a Redis server that it starts itself, or on a
// given one.
//
// It exits with 0, 1 when a measurement failed or a guarantee did not hold, 2
// when it was called wrongly, and 130 when it was interrupted.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/dueq-io/dueq/bench/load"
)

func main() {
	logging.Disable() // the client's own lines: what matters comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(load.Run(ctx, "bench", os.Args[1:], os.Stdout, os.Stderr))
}
