package measure

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

// Slow is what the server's slow log says of commands that are not the meter's.
type Slow struct {
	Max   time.Duration
	Worst string // the slowest command and its first key
	Over  int    // commands slower than 3 ms
	All   int    // commands slower than 1 ms
}

// Slowest runs do and looks at the commands it made the server run. Durations
// are on the wall clock: on a busy machine the server may not have run meanwhile.
func (m *Meter) Slowest(ctx context.Context, do func() error) (s Slow, err error) {
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
		s.All++
		if entry.Duration > slowOver {
			s.Over++
		}
		if entry.Duration > s.Max {
			s.Max, s.Worst = entry.Duration, name+firstKey(entry.Args)
		}
	}
	return s, nil
}

// Figures are those of a row.
func (s Slow) Figures() []Figure {
	return []Figure{
		{Name: "slowest command", Value: Micros(s.Max) / 1e3, Unit: "ms", Of: s.Worst},
		{Name: "commands over 1 ms", Value: float64(s.All)},
		{Name: "over 3 ms", Value: float64(s.Over)},
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
