package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
)

// completeTopics has the shell complete the first argument, or with many each, to
// a topic of the Redis that flags or environment name.
func completeTopics(cmd *cobra.Command, many bool) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		q, server, err := openQueue(cmd, dueq.Options{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer func() { _ = server.close() }() // it was only read
		topics, err := q.Topics(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var fit []string
		for _, topic := range topics {
			if strings.HasPrefix(topic, begun) && printable(topic) == topic {
				fit = append(fit, topic)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// nameShells adds the verb completion, which writes to where root does, and has it
// refuse a shell that it does not know.
func nameShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(*cobra.Command, []string) error {
				return usageError{errors.New("name a shell: bash, zsh, fish or powershell")}
			}
		}
	}
}

// completeFlag has the shell complete a flag to one of some words.
func completeFlag(cmd *cobra.Command, name string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // there is no such flag, or it is completed already
	}
}
