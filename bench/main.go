// Command bench measures dueq on a Redis server that it starts itself, or on a
// given one.
//
// It exits with 0, 1 when a measurement failed or a guarantee did not hold, 2
// when it was called wrongly, and 130 when it was interrupted.
package main

import (
	"context"
	"io"

	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/bench/load"
)

func main() {
	measure.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return load.Run(ctx, "bench", args, stdout, stderr)
	})
}
