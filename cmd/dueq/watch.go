package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dueq-io/dueq"
)

// rates are a topic's counters per second.
type rates struct {
	Published   float64 `json:"published"`
	Kept        float64 `json:"kept"`
	Duplicates  float64 `json:"duplicates"`
	Delivered   float64 `json:"delivered"`
	Acked       float64 `json:"acked"`
	Retried     float64 `json:"retried"`
	Released    float64 `json:"released"`
	Expired     float64 `json:"expired"`
	Buried      float64 `json:"buried"`
	Dropped     float64 `json:"dropped"`
	Cancelled   float64 `json:"cancelled"`
	Rescheduled float64 `json:"rescheduled"`
}

// rates are what the i-th topic has counted per second since an earlier sample.
func (s *sample) rates(i int, earlier *sample) *rates {
	now, then := s.counts[i], earlier.of(s.topics[i])
	seconds := max(s.at.Sub(earlier.at), time.Millisecond).Seconds()
	since := func(count func(*dueq.Stats) int) float64 {
		return float64(max(0, count(&now)-count(&then))) / seconds
	}
	return &rates{
		Published:   since(func(c *dueq.Stats) int { return c.Published }),
		Kept:        since(func(c *dueq.Stats) int { return c.Kept }),
		Duplicates:  since(func(c *dueq.Stats) int { return c.Duplicates }),
		Delivered:   since(func(c *dueq.Stats) int { return c.Delivered }),
		Acked:       since(func(c *dueq.Stats) int { return c.Acked }),
		Retried:     since(func(c *dueq.Stats) int { return c.Retried }),
		Released:    since(func(c *dueq.Stats) int { return c.Released }),
		Expired:     since(func(c *dueq.Stats) int { return c.Expired }),
		Buried:      since(func(c *dueq.Stats) int { return c.Buried }),
		Dropped:     since(func(c *dueq.Stats) int { return c.Dropped }),
		Cancelled:   since(func(c *dueq.Stats) int { return c.Cancelled }),
		Rescheduled: since(func(c *dueq.Stats) int { return c.Rescheduled }),
	}
}

// rate is a number per second for people.
func rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 99.95 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return thousands(int(perSecond + 0.5))
}

// screen shows one thing after the other: on a terminal in the place of the last,
// elsewhere below it.
type screen struct {
	w        io.Writer
	terminal bool
	shown    bool
}

func (s *screen) show(write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	out := text.String()
	switch {
	case s.terminal:
		begin := "\x1b[H" // the upper left corner
		if !s.shown {
			begin = "\x1b[2J" + begin
		}
		out = begin + strings.ReplaceAll(out, "\n", "\x1b[K\n") + "\x1b[J" // what was longer is erased
	case s.shown:
		out = "\n" + out
	}
	s.shown = true
	_, err := io.WriteString(s.w, out)
	return err
}
