package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	minInterval, maxInterval = 100 * time.Millisecond, time.Hour

	columns = 11 // of the table, before the topic
)

// statsFlags are the flags of the verb stats.
type statsFlags struct {
	watch    bool
	interval time.Duration
	output   outputFlag
}

// newStats is the verb stats.
func newStats() *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use:   "stats [TOPIC ...]",
		Short: "Count the events of topics",
		Long: `Counts the events of the topics, or of all topics of the namespace.

  SCHEDULED  wait for their time, or for a retry; also those of a backlog, and of a
             topic without subscribers, that have not been moved to the ready ones yet
  READY      are due and come next, and no live process has them
  LEASED     are held by live processes
  DEAD       have failed for good
  OLDEST     how long the oldest event that nobody has is due
  P50, P99   how late half of all, and all but one in a hundred, began to be handled:
             milliseconds from the effect time, estimated from a histogram that
             all processes add to every few seconds; with --watch, since the last count
  PUBLISHED, ACKED, RETRIED, BURIED
             counted since the topic began; with --watch, per second

A topic that cannot be counted, while others can, has dashes and the reason in the
table, and in JSON error instead of numbers; the exit code is then 1. With --watch it
may be counted the next time.

With --watch it counts again every --interval until it is interrupted. JSON is one
object, with --watch one object per line and interval; the rates there are of all
counters, per second.

` + redisHelp,
		Example: `  dueq stats --redis redis://localhost:6379
  dueq stats order.close --watch
  dueq stats -o json | jq '.topics[] | select(.dead > 0) | .topic'`,
		Args: cobra.ArbitraryArgs,
		RunE: f.run,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.watch, "watch", "w", false, "go on until interrupted")
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "with --watch: the time from one count to the next")
	f.output.add(cmd)
	flags.SortFlags = false
	completeTopics(cmd, true)
	return cmd
}

func (f *statsFlags) run(cmd *cobra.Command, topics []string) error {
	var err error
	switch {
	case f.interval < minInterval || f.interval > maxInterval:
		err = fmt.Errorf("--interval is %v, not from %v to %v", f.interval, minInterval, maxInterval)
	case !f.watch && cmd.Flags().Changed("interval"):
		err = errors.New("--interval is for --watch")
	}
	if err != nil {
		return usageError{err}
	}
	return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
		if err := checkKnown(ctx, cmd, q, topics...); err != nil {
			return err
		}
		if f.watch {
			return f.follow(ctx, cmd, q, topics)
		}
		sample, err := count(ctx, q, topics)
		if err != nil {
			return err
		}
		if f.output == "json" {
			err = printJSON(cmd.OutOrStdout(), counted{Topics: sample.stats(nil)})
		} else {
			err = sample.write(cmd.OutOrStdout(), namespace(cmd), nil)
		}
		return errors.Join(err, sample.incomplete())
	})
}

// follow counts until ctx ends, and shows each time what has come since the last.
func (f *statsFlags) follow(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topics []string) error {
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	screen := &screen{w: cmd.OutOrStdout(), terminal: isTerminal(cmd.OutOrStdout()) && os.Getenv("TERM") != "dumb"}
	var last *sample
	for {
		now, err := count(ctx, q, topics)
		switch {
		case ctx.Err() != nil && last != nil:
			return nil // that is how it ends
		case err != nil:
			return err
		case f.output == "json":
			at := envelope.Stamp(now.at)
			if err := printJSON(cmd.OutOrStdout(), counted{At: at, Topics: now.stats(last)}); err != nil {
				return err
			}
		default:
			err := screen.show(func(w io.Writer) error { return now.write(w, namespace(cmd), orSelf(last, now)) })
			if err != nil {
				return err
			}
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func orSelf(s, self *sample) *sample {
	if s == nil {
		return self
	}
	return s
}

// counted is what stats prints as JSON.
type counted struct {
	At     string       `json:"at,omitempty"`
	Topics []topicStats `json:"topics"`
}

// topicStats are a topic's stats, with what was counted per second since the
// last time.
type topicStats struct {
	envelope.Counted
	Rates *rates `json:"rates,omitempty"`
}

// sample is what was counted at some moment.
type sample struct {
	at     time.Time
	topics []census.Topic
}

// count counts the events of the topics, or of all that there are now. It fails if
// none of them can be counted.
func count(ctx context.Context, q *dueq.Queue, topics []string) (*sample, error) {
	if len(topics) == 0 {
		var err error
		if topics, err = q.Topics(ctx); err != nil {
			return nil, err
		}
	}
	s := &sample{at: time.Now()}
	s.topics = census.Count(ctx, q, topics)
	if err := ctx.Err(); err != nil {
		return nil, err // what is not counted says nothing about its topic
	}
	if n := len(s.topics); n > 0 && s.missing() == n {
		return nil, s.topics[0].Err
	}
	return s, nil
}

// missing is how many topics could not be counted.
func (s *sample) missing() int {
	n := 0
	for _, t := range s.topics {
		if t.Err != nil {
			n++
		}
	}
	return n
}

// incomplete is an error unless all topics could be counted.
func (s *sample) incomplete() error {
	if n := s.missing(); n > 0 {
		return fmt.Errorf("%d of %s could not be counted", n, plural(len(s.topics), "topic"))
	}
	return nil
}

// stats are the sample in JSON; with rates if there is an earlier one.
func (s *sample) stats(earlier *sample) []topicStats {
	list := make([]topicStats, len(s.topics))
	for i, t := range s.topics {
		if t.Err != nil {
			list[i].Counted = envelope.NewCounted(t.Name, nil, tell(t.Err))
			continue
		}
		list[i].Counted = envelope.NewCounted(t.Name, &t.Stats, "")
		if earlier != nil {
			list[i].Rates = s.rates(i, earlier)
		}
	}
	return list
}

// write prints a table. With an earlier sample it has rates, and how late events
// were since, in the place of counters.
func (s *sample) write(w io.Writer, namespace string, earlier *sample) error {
	if len(s.topics) == 0 {
		fmt.Fprintf(w, "no topics in namespace %q\n", namespace)
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "SCHEDULED\tREADY\tLEASED\tDEAD\tOLDEST\tP50 MS\tP99 MS\t")
	if earlier == nil {
		fmt.Fprint(table, "PUBLISHED\tACKED\tRETRIED\tBURIED\t  TOPIC\n")
	} else {
		fmt.Fprint(table, "PUBLISHED/S\tACKED/S\tRETRIED/S\tBURIED/S\t  TOPIC\n")
	}
	for i, t := range s.topics {
		if t.Err != nil {
			fmt.Fprintf(table, "%s  %s (not counted: %s)\n", strings.Repeat("-\t", columns), printable(t.Name), printable(tell(t.Err)))
			continue
		}
		c := &t.Stats
		oldest, late := "-", c.Lateness
		if !c.OldestDue.IsZero() {
			oldest = span(max(0, s.at.Sub(c.OldestDue)))
		}
		counters := [4]string{digits.Group(c.Published), digits.Group(c.Acked), digits.Group(c.Retried), digits.Group(c.Buried)}
		if earlier != nil {
			counters, late = [4]string{"-", "-", "-", "-"}, dueq.Histogram{}
			if r := s.rates(i, earlier); r != nil {
				counters = [4]string{rate(r.Published), rate(r.Acked), rate(r.Retried), rate(r.Buried)}
				late = c.Lateness.Since(earlier.of(t.Name).Stats.Lateness)
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t", digits.Group(c.Scheduled), digits.Group(c.Ready), digits.Group(c.Leased), digits.Group(c.Dead),
			oldest, quantileCell(late, 0.5), quantileCell(late, 0.99))
		for _, text := range counters {
			fmt.Fprintf(table, "%s\t", text)
		}
		paused := ""
		if c.Paused {
			paused = " (paused)"
		}
		fmt.Fprintf(table, "  %s%s\n", printable(t.Name), paused)
	}
	return table.Flush()
}

func quantileCell(h dueq.Histogram, p float64) string {
	if h.Count() == 0 {
		return "-"
	}
	return short(millis(h.Quantile(p)))
}

// of is what was counted of a topic: nothing if it was not there.
func (s *sample) of(topic string) census.Topic {
	for _, t := range s.topics {
		if t.Name == topic {
			return t
		}
	}
	return census.Topic{Name: topic}
}
