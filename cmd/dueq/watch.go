package main

import (
	"bytes"
	"io"
	"strings"
	"time"
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

// rates are what the i-th topic has counted per second since an earlier sample, or
// nil if that could not count it.
func (s *sample) rates(i int, earlier *sample) *rates {
	before := earlier.of(s.topics[i].Name)
	if before.Err != nil {
		return nil
	}
	now, then := s.topics[i].Stats, before.Stats
	seconds := max(s.at.Sub(earlier.at), time.Millisecond).Seconds()
	perSecond := func(now, then int) float64 { return float64(max(0, now-then)) / seconds }
	return &rates{
		Published:   perSecond(now.Published, then.Published),
		Kept:        perSecond(now.Kept, then.Kept),
		Duplicates:  perSecond(now.Duplicates, then.Duplicates),
		Delivered:   perSecond(now.Delivered, then.Delivered),
		Acked:       perSecond(now.Acked, then.Acked),
		Retried:     perSecond(now.Retried, then.Retried),
		Released:    perSecond(now.Released, then.Released),
		Expired:     perSecond(now.Expired, then.Expired),
		Buried:      perSecond(now.Buried, then.Buried),
		Dropped:     perSecond(now.Dropped, then.Dropped),
		Cancelled:   perSecond(now.Cancelled, then.Cancelled),
		Rescheduled: perSecond(now.Rescheduled, then.Rescheduled),
	}
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
