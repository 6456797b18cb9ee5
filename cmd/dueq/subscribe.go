package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
)

// subscribeFlags are the flags of the verb subscribe.
type subscribeFlags struct {
	exec, forward string
	concurrency   int
	maxAttempts   int
	timeout       time.Duration
	count         int
	output        outputFlag
}

// newSubscribe is the verb subscribe.
func newSubscribe() *cobra.Command {
	f := subscribeFlags{output: "json"}
	cmd := &cobra.Command{
		Use:   "subscribe TOPIC...",
		Short: "Print the events of topics as they come due, run a command for each, or post them",
		Long: `Takes the events of topics as they come due, until SIGINT or SIGTERM. What is
being handled then may finish within 30 seconds; the rest goes back to the queue.
Another signal, a second later or more, ends it at once.

It prints each event as a line of JSON, which acks it once the line is written:

  {"id":"…","topic":"…","effect_time":"…","attempt":1,"max_attempts":10,
   "metadata":{…},"body":…}

"body" is the body if that is JSON; else "text" is, as a string, or "base64" if it
is not UTF-8. Without a body there is none of them.

With --exec it runs a command by /bin/sh for each event, with the body on stdin and
in its environment DUEQ_ID, DUEQ_TOPIC, DUEQ_ATTEMPT, DUEQ_MAX_ATTEMPTS,
DUEQ_EFFECT_TIME (RFC 3339) and DUEQ_METADATA (a JSON object). Its exit code decides:

  0      the event is done
  65     it has failed for good (EX_DATAERR of sysexits.h)
  other  it is tried again later

The last lines on its stderr are kept with the event as the error. When --timeout
has passed, or the event is no longer this process's, the command and all that it
has started get SIGTERM, and a second later SIGKILL.

With --forward it posts each event's body to a URL. A status from 200 to 299 means
that the event is done; of the others those from 400 to 499 that it has failed for
good, but for 408, 425 and 429; the header Retry-After is heeded. The headers
Dueq-Id, Dueq-Topic, Dueq-Attempt, Dueq-Effect-Time and Dueq-Meta-… tell of the event.
With a secret in $` + pushSecretEnv + ` requests are signed as https://www.standardwebhooks.com
describes.

Exit codes: 0 done, also by a signal; 1 failed, such as when stdout was closed;
2 called wrongly; 130 interrupted before --count events had come.

` + redisHelp,
		Example: `  dueq subscribe order.close
  dueq subscribe order.close --exec './close-order "$DUEQ_ID"' --timeout 1m
  dueq subscribe mail sms --forward https://example.org/hook --concurrency 20
  dueq subscribe order.close --count 1 | jq .body`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: f.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.exec, "exec", "", "run this `command` for each event")
	flags.StringVar(&f.forward, "forward", "", "post each event to this `URL`")
	flags.IntVar(&f.concurrency, "concurrency", 0, "`events` of a topic at a time (default 1 to print, one per CPU for --exec, 64 for --forward)")
	flags.IntVar(&f.maxAttempts, "max-attempts", 10, "after how many `attempts` an event has failed for good")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long an event may take (default 30m0s, 30s for --forward)")
	flags.IntVar(&f.count, "count", 0, "end after so many `deliveries` (default: go on)")
	f.output.addAs(cmd, "print in this `format`: json, or table for people")
	flags.SortFlags = false
	completeTopics(cmd, true)
	return cmd
}

func (f *subscribeFlags) check(cmd *cobra.Command) error {
	set := cmd.Flags().Changed
	switch {
	case set("exec") && set("forward"):
		return errors.New("--exec and --forward exclude each other")
	case set("exec") && f.exec == "":
		return errors.New("--exec is empty")
	case set("output") && (set("exec") || set("forward")):
		return errors.New("--output is for printing, not for --exec and --forward")
	case set("concurrency") && f.concurrency < 1:
		return fmt.Errorf("--concurrency is %d, not at least 1", f.concurrency)
	case f.maxAttempts < 1:
		return fmt.Errorf("--max-attempts is %d, not at least 1", f.maxAttempts)
	case set("timeout") && f.timeout < time.Millisecond:
		return fmt.Errorf("--timeout is %v, not at least %v", f.timeout, time.Millisecond)
	case set("count") && f.count < 1:
		return fmt.Errorf("--count is %d, not at least 1", f.count)
	}
	return nil
}

// handler is what the flags make of each event, and how many at a time.
func (f *subscribeFlags) handler(cmd *cobra.Command) (h dueq.Handler, concurrency int, err error) {
	switch {
	case f.exec != "":
		return newRunner(f.exec, cmd.OutOrStdout(), cmd.ErrOrStderr()), runtime.NumCPU(), nil
	case cmd.Flags().Changed("forward"):
		h, err = dueqhttp.Forward(f.forward, dueqhttp.ForwardOptions{Timeout: f.timeout, Secret: os.Getenv(pushSecretEnv)})
		if err != nil {
			err = fmt.Errorf("--forward, or its secret in $%s: %w", pushSecretEnv, err)
		}
		return h, 64, err
	}
	return newPrinter(cmd.OutOrStdout(), f.output), 1, nil
}

func (f *subscribeFlags) run(cmd *cobra.Command, topics []string) error {
	if err := f.check(cmd); err != nil {
		return usageError{err}
	}
	handler, concurrency, err := f.handler(cmd)
	if err != nil {
		return usageError{err}
	}
	log := newLogger(cmd.ErrOrStderr())
	q, server, err := openQueue(cmd, dueq.Options{
		Concurrency: cmp.Or(f.concurrency, concurrency), MaxAttempts: f.maxAttempts, HandlerTimeout: f.timeout, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then

	defer catchBrokenPipe()()
	m := newMeter(handler, f.count, log)
	for _, topic := range topics {
		if err := q.Subscribe(topic, m); err != nil {
			m.fail(err)
			return asUsage(m.wait(cmd.Context(), q))
		}
	}
	close(m.ready)
	return m.wait(cmd.Context(), q)
}
