package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
)

// filterFlags are the flags that narrow events down.
type filterFlags struct{ prefix, cause, since, until string }

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.prefix, "id-prefix", "", "only events whose id begins with this `text`")
	flags.StringVar(&f.cause, "error", "", "only events whose last error contains this `text`")
	flags.StringVar(&f.since, "since", "", "only events due, or dead, at this `time` or later: RFC 3339, or from now, as -1h for an hour ago")
	flags.StringVar(&f.until, "until", "", "only events due, or dead, before this `time`")
}

// filter is what the flags say, and whether they say anything.
func (f *filterFlags) filter(now time.Time) (filter dueq.Filter, any bool, err error) {
	filter = dueq.Filter{IDPrefix: f.prefix, Error: f.cause}
	if filter.Since, err = timeFlag("since", f.since, now); err != nil {
		return filter, false, err
	}
	if filter.Until, err = timeFlag("until", f.until, now); err != nil {
		return filter, false, err
	}
	return filter, filter != dueq.Filter{}, nil
}

// timeFlag is a time that is given as such or as a distance from now; the zero
// time if neither.
func timeFlag(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.IsZero() {
		return t, fmt.Errorf("--%s is %.40q, neither a time as 2006-01-02T15:04:05Z (RFC 3339) nor a distance from now as -1h30m", name, text)
	}
	return t, nil
}
