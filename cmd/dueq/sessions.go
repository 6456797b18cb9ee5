package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

// maxTopics is how many topics of a session the table names.
const maxTopics = 3

// newSessions is the verb sessions.
func newSessions() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the processes that subscribe to topics",
		Long: `Lists the processes that subscribe to topics or consume them, in the order in
which they started: where they run, when they were last seen, how many events
they hold, and of which topics. One that dies is listed for about a minute more.

` + redisHelp,
		Example: `  dueq sessions --redis redis://localhost:6379
  dueq sessions -o json | jq '.sessions[] | select(.held > 0) | .host'`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
				sessions, err := q.Sessions(ctx)
				if err != nil {
					return err
				}
				if output != "json" {
					return writeSessions(cmd, sessions)
				}
				list := make([]envelope.Session, len(sessions))
				for i, s := range sessions {
					list[i] = envelope.NewSession(s)
				}
				return printJSON(cmd.OutOrStdout(), map[string][]envelope.Session{"sessions": list})
			})
		},
	}
	output.add(cmd)
	return cmd
}

func writeSessions(cmd *cobra.Command, sessions []dueq.Session) error {
	if len(sessions) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "no sessions in namespace %q\n", namespace(cmd))
		return nil
	}
	now := time.Now()
	table := newTable(cmd.OutOrStdout())
	fmt.Fprint(table, "SESSION\tHOST\tPID\tSTARTED\tLAST SEEN\tHELD\tTOPICS\n")
	for _, s := range sessions {
		names := make([]string, 0, maxTopics)
		for _, name := range s.Topics[:min(maxTopics, len(s.Topics))] {
			names = append(names, cell(name, 40))
		}
		topics := strings.Join(names, ", ")
		if more := len(s.Topics) + s.MoreTopics - len(names); more > 0 {
			topics += " and " + digits.Group(more) + " more"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", cell(s.ID, 40), cell(s.Host, 40), s.PID,
			distance(s.Started, now), distance(s.LastSeen, now), digits.Group(s.Held), topics)
	}
	return table.Flush()
}
