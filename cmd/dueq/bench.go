package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq/bench/load"
)

// exitError ends the command with a code, and has been told.
type exitError struct{ code int }

func (e exitError) Error() string { return "" }

// newBench is the verb bench. Its flags are those of the program of that name.
func newBench() *cobra.Command {
	return &cobra.Command{
		Use:   "bench [flags] [SCENARIO ...]",
		Short: "Measure dueq: rates, lateness, what it costs Redis",
		Long: `Measures dueq on a redis-server that it starts itself, or on the one that --redis
names: a server that serves nothing else meanwhile. It does not take the Redis
of the environment, so that no load falls on a server by mistake. What it puts
there is in namespaces of its own, and removed at the end.`,
		Example: `  dueq bench --help
  dueq bench publish drain
  dueq bench --short -o json all | jq '.rows[] | {scenario, variant, events_per_second}'`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "--help" }) {
				out := cmd.OutOrStdout()
				_, _ = out.Write([]byte(cmd.Long + "\n\n"))
				return exit(load.Run(cmd.Context(), cmd.CommandPath(), args, out, out))
			}
			return exit(load.Run(cmd.Context(), cmd.CommandPath(), args, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
}

func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return exitError{code}
}
