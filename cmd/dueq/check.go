package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
	"github.com/dueq-io/dueq/internal/digits"
)

// maxShown is the most examples of a kind that the table shows. JSON has more.
const maxShown = 5

// checkFlags are the flags of the verb check.
type checkFlags struct {
	all    bool
	repair bool
	output outputFlag
}

// newCheck is the verb check.
func newCheck() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [TOPIC ...]",
		Short: "Look whether every event of a topic lies where it should, and mend what does not",
		Long: `Looks whether each event of the topics lies in exactly one place: scheduled,
ready, held by a process, or dead. It works in small steps while the topics are
in use, and changes nothing. dueq is built to keep it so whichever process dies
when; what is found, some other hand did, such as an eviction or a stray command.

  found         is                                 with --repair
  no_place      an event that lies nowhere         goes to the dead
  no_body       an id without a body               is forgotten
  two_places    an event in more than one place    stays in one: held, else ready, scheduled, dead
  wrong_bucket  an event where nobody looks        goes to where it belongs, with its time
  no_session    an event held by no process        is given back, to be handled
  leftover      attempts of an event that is gone  is forgotten

Exit codes: 0 nothing found, or all of it repaired; 1 something found, or failed;
2 called wrongly; 130 interrupted.

` + redisHelp,
		Example: `  dueq check --redis redis://localhost:6379 order.close
  dueq check --all -o json | jq '.topics[] | select(.findings != [])'
  dueq check --all --repair`,
		Args: func(cmd *cobra.Command, topics []string) error {
			if err := f.check(topics); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: f.run,
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "check all topics of the namespace")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "mend what is found")
	f.output.add(cmd)
	cmd.Flags().SortFlags = false
	completeTopics(cmd, true)
	return cmd
}

func (f *checkFlags) check(topics []string) error {
	switch {
	case f.all && len(topics) > 0:
		return errors.New("topics and --all exclude each other")
	case !f.all && len(topics) == 0:
		return errors.New("name topics, or --all")
	}
	return nil
}

// checkReport is what check prints as JSON.
type checkReport struct {
	Redis     string         `json:"redis"`
	Namespace string         `json:"namespace"`
	Left      int            `json:"left"` // findings that are not repaired
	Topics    []*dueq.Report `json:"topics"`
}

// run checks the topics on the server that cmd's flags name, and prints what it found.
func (f *checkFlags) run(cmd *cobra.Command, topics []string) error {
	ctx := cmd.Context()
	q, server, err := openQueue(cmd, dueq.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then
	if f.all {
		topics, err = q.Topics(ctx)
	} else {
		err = checkKnown(ctx, cmd, q, topics...)
	}
	if err != nil {
		return err
	}
	audit := q.Check
	if f.repair {
		audit = q.Repair
	}
	r := checkReport{Redis: server.name, Namespace: namespace(cmd)}
	r.Topics, err = census.Audit(ctx, q, topics, audit)
	for _, report := range r.Topics {
		r.Left += report.Left()
	}
	if f.output == "json" {
		err = errors.Join(err, printJSON(cmd.OutOrStdout(), r))
	} else if err == nil || len(r.Topics) > 0 {
		r.writeTable(cmd.OutOrStdout())
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errInterrupted
	case err == nil && r.Left > 0:
		return fmt.Errorf("%s found; --repair mends that", plural(r.Left, "fault"))
	}
	return err
}

// writeTable prints the report for people.
func (r *checkReport) writeTable(w io.Writer) {
	if len(r.Topics) == 0 {
		fmt.Fprintf(w, "no topics in namespace %q\n", r.Namespace)
		return
	}
	table := newTable(w)
	defer func() { _ = table.Flush() }()
	fmt.Fprint(table, "TOPIC\tEVENTS\tFOUND\tCOUNT\tREPAIRED\n")
	for _, topic := range r.Topics {
		if len(topic.Findings) == 0 {
			fmt.Fprintf(table, "%s\t%s\tnothing\t0\t0\n", printable(topic.Topic), digits.Group(topic.Events))
		}
		for _, f := range topic.Findings {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n",
				printable(topic.Topic), digits.Group(topic.Events), f.Kind, digits.Group(f.Count), digits.Group(f.Repaired))
		}
	}
	for _, topic := range r.Topics {
		for _, f := range topic.Findings {
			fmt.Fprintf(table, "\n%s in %s:\n", f.Kind, printable(topic.Topic))
			for _, e := range f.Examples[:min(maxShown, len(f.Examples))] {
				fmt.Fprintf(table, "  %s\t%s\n", printable(e.ID), printable(strings.Join(e.Keys, " ")))
			}
			if more := f.Count - maxShown; more > 0 {
				fmt.Fprintf(table, "  and %s more\n", digits.Group(more))
			}
		}
	}
}
