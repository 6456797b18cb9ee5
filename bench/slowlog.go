package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	slowFrom = time.Millisecond     // what the log takes up
	slowOver = 3 * time.Millisecond // what no command should need
)

// slow is what the server's slow log says of commands that are not the meter's.
type slow struct {
	max   time.Duration
	worst string // the slowest command and its first key
	over  int    // commands slower than slowOver
	all   int    // commands slower than slowFrom
}

// slowest runs do and looks at the commands it made the server run. Durations
// are on the wall clock: on a busy machine the server may not have run meanwhile.
func (m *meter) slowest(ctx context.Context, do func() error) (s slow, err error) {
	before := make(map[string]string)
	for name, value := range map[string]int64{"slowlog-log-slower-than": slowFrom.Microseconds(), "slowlog-max-len": 10_000} {
		old, err := m.rdb.ConfigGet(ctx, name).Result()
		if err != nil {
			return s, fmt.Errorf("set up the slow log: %w", err)
		}
		maps.Copy(before, old)
		if err := m.rdb.ConfigSet(ctx, name, fmt.Sprint(value)).Err(); err != nil {
			return s, fmt.Errorf("set up the slow log: %w", err)
		}
	}
	defer func() {
		for name, value := range before {
			err = errors.Join(err, m.rdb.ConfigSet(context.WithoutCancel(ctx), name, value).Err())
		}
	}()
	if err := m.rdb.Do(ctx, "slowlog", "reset").Err(); err != nil {
		return s, fmt.Errorf("reset the slow log: %w", err)
	}
	if err := do(); err != nil {
		return s, err
	}
	log, err := m.rdb.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return s, fmt.Errorf("read the slow log: %w", err)
	}
	for _, entry := range log {
		name := strings.ToLower(strings.Join(entry.Args[:min(1, len(entry.Args))], ""))
		if slices.Contains([]string{"info", "config", "slowlog", "ping"}, name) {
			continue
		}
		s.all++
		if entry.Duration > slowOver {
			s.over++
		}
		if entry.Duration > s.max {
			s.max, s.worst = entry.Duration, name+firstKey(entry.Args)
		}
	}
	return s, nil
}

func (s slow) figures() []figure {
	return []figure{
		{Name: "slowest command", Value: micros(s.max) / 1e3, Unit: "ms", Of: s.worst},
		{Name: "commands over 1 ms", Value: float64(s.all)},
		{Name: "over 3 ms", Value: float64(s.over)},
	}
}

// firstKey tells scripts apart: " on …:ready". It is empty if the key has no hash tag.
func firstKey(args []string) string {
	if len(args) < 4 {
		return ""
	}
	if _, name, ok := strings.Cut(args[3], "}:"); ok {
		name, _, _ = strings.Cut(name, ":")
		return " on …:" + name
	}
	return ""
}
