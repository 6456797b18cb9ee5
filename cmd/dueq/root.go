package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells count
)

// errInterrupted says that a signal came before a verb's work was done.
var errInterrupted = errors.New("interrupted")

// usageError is an error of the caller's: in a flag, an argument or the
// environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs the command with the given arguments and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	nameShells(root)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	if err == nil {
		return exitOK
	}
	if told, ok := errors.AsType[exitError](err); ok {
		return told.code
	}
	fmt.Fprintf(stderr, "dueq: %s\n", tell(err))
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	return exitFailure
}

// packages are the names that errors of the library begin with.
var packages = regexp.MustCompile(`(^|\n|: )((dueq|dueqhttp|bucket|subscriber|readyqueue): )+`)

// tell is an error for people, who need not know the library's packages.
func tell(err error) string {
	text := packages.ReplaceAllString(err.Error(), "$1")
	if redis.HasErrorPrefix(err, "MOVED") {
		text += ": this Redis is a Cluster, name it with redis-cluster://"
	}
	return text
}

// newRoot is the command without a verb, which shows its help, and all verbs.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dueq",
		Short: "Deliver events at a chosen time, through Redis",
		Long: `dueq delivers events at a chosen time: handlers get an event at its effect
time, at least once and never early. Redis is the only server it needs.

Name the Redis with --redis or $DUEQ_REDIS. Without one, demo and serve start an
embedded miniredis, which keeps nothing: all is in memory.

Exit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted.`,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       readBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetVersionTemplate("{{.Version}}\n")
	addQueueFlags(root)
	root.AddCommand(newDemo(), newServe(), newCheck(), newPublish(), newSubscribe(), newBench(), newVersion(),
		newTopics(), newStats(), newLs(), newGet(), newCancel(), newReschedule(), newRequeue(), newPurge(),
		newPause(), newResume(), newSessions())
	return root
}

// usageArgs makes what a check of arguments finds a [usageError]. That of a verb
// says what the verb takes.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		if cmd.HasParent() {
			err = fmt.Errorf("called with %s, not as %s", plural(len(args), "argument"), cmd.UseLine())
		}
		return usageError{err}
	}
}
