package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

// Main runs a program whose result is its exit code, and has its ctx end when it
// is interrupted. It does not return.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	logging.Disable() // the client's own lines: what matters comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// UsageError says that a program was called wrongly.
type UsageError struct{ Err error }

// Error says what is wrong, and where to look it up.
func (e UsageError) Error() string { return fmt.Sprintf("%v (-h shows how to call it)", e.Err) }

// ExitCode prints why the program of that name failed, if it did. It is 0, or 1, 2
// for a [UsageError], 130 when ctx ended.
func ExitCode(ctx context.Context, name string, err error, stderr io.Writer) int {
	code := 1
	var usage UsageError
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		code = 2
	case ctx.Err() != nil:
		code, err = 130, errors.New("interrupted")
	case err == nil:
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return code
}
