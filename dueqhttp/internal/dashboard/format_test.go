package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range [][2]string{
		{dashboard.Rate(0), "0"},
		{dashboard.Rate(0.01), "<0.1"},
		{dashboard.Rate(3.14), "3.1"},
		{dashboard.Rate(9.99), "10"},
		{dashboard.Rate(12345.6), "12,346"},
		{dashboard.Span(0), "0 s"},
		{dashboard.Span(time.Microsecond), "<1 ms"},
		{dashboard.Span(time.Millisecond), "1 ms"},
		{dashboard.Span(1500 * time.Microsecond), "1.5 ms"},
		{dashboard.Span(320 * time.Millisecond), "320 ms"},
		{dashboard.Span(9999 * time.Millisecond), "9.9 s"},
		{dashboard.Span(59 * time.Second), "59 s"},
		{dashboard.Span(60 * time.Second), "1 min"},
		{dashboard.Span(200 * time.Second), "3 min 20 s"},
		{dashboard.Span(2*time.Hour + 5*time.Minute + 59*time.Second), "2 h 5 min"},
		{dashboard.Span(3*day + 4*time.Hour), "3 d 4 h"},
		{dashboard.Span(-800 * day), "2 y 70 d"},
		{dashboard.Relative(now.Add(90*time.Second), now), "in 1 min 30 s"},
		{dashboard.Relative(now.Add(-90*time.Second), now), "1 min 30 s ago"},
		{dashboard.Relative(now, now), "now"},
		{dashboard.BytesOf(1), "1 byte"},
		{dashboard.BytesOf(1023), "1023 bytes"},
		{dashboard.BytesOf(1536), "1.5 KiB"},
		{dashboard.BytesOf(3 << 20), "3.0 MiB"},
		{dashboard.Excerpt([]byte(" a\n\tb "), false), "a b"},
		{dashboard.Excerpt([]byte("caf\xc3\xa9 \xe5\xb2"), true), "café…"},
		{dashboard.Excerpt([]byte("\x00\x01\xff"), false), "00 01 ff"},
		{dashboard.Excerpt([]byte("\xff\xfe"), true), "ff fe…"},
		{dashboard.Excerpt([]byte("a\x1b[31m"), false), "61 1b 5b 33 31 6d"},
		{dashboard.Excerpt([]byte(strings.Repeat("\x00", 30)), false), strings.TrimSpace(strings.Repeat("00 ", 24)) + "…"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	var h dashboard.History
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	if points := dashboard.Add(&h, at, dueq.Stats{Published: 100, Acked: 50}); len(points) != 0 {
		t.Fatalf("%d points after one sample", len(points))
	}
	at = at.Add(2 * time.Second)
	stats := dueq.Stats{Published: 120, Acked: 60, Retried: 2, Buried: 2}
	first := dashboard.Add(&h, at, stats)
	if len(first) != 1 || first[0].Published != 10 || first[0].Handled != 5 || first[0].Failed != 2 || first[0].Deliveries != 0 {
		t.Fatalf("points %+v", first)
	}
	if again := dashboard.Add(&h, at, dueq.Stats{}); len(again) != 1 {
		t.Errorf("%d points after two samples at once", len(again))
	}
	at = at.Add(2 * time.Second)
	points := dashboard.Add(&h, at, dueq.Stats{}) // its keys were deleted
	if p := points[len(points)-1]; p.Published != 0 || p.Handled != 0 || p.Failed != 0 {
		t.Errorf("point %+v", p)
	}
	for range 3 * dashboard.MaxPoints {
		at = at.Add(100 * time.Millisecond)
		points = dashboard.Add(&h, at, stats)
	}
	if len(points) != dashboard.MaxPoints || !points[len(points)-1].At.Equal(at) {
		t.Errorf("%d points until %v, want %d until %v", len(points), points[len(points)-1].At, dashboard.MaxPoints, at)
	}
	if first[0].Published != 10 {
		t.Error("a point that was handed out has changed")
	}
	at = at.Add(time.Hour) // nobody looked
	if points = dashboard.Add(&h, at, stats); len(points) != 1 {
		t.Errorf("%d points of the last five minutes, want 1", len(points))
	}
}

func TestCoarse(t *testing.T) {
	t.Parallel()
	var h dashboard.History
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	dashboard.Add(&h, at, dueq.Stats{})
	published := 0
	for i := range 30 { // 0, 10, 20 a second, and so on anew
		at = at.Add(2 * time.Second)
		published += i % 3 * 20
		dashboard.Add(&h, at, dueq.Stats{Published: published})
	}
	points := dashboard.Add(&h, at, dueq.Stats{})
	coarse := dashboard.Coarse(points, 6*time.Second)
	if len(points) != 30 || len(coarse) != 11 {
		t.Fatalf("%d points of %d, want 11 of 30", len(coarse), len(points))
	}
	for _, p := range coarse[1:10] {
		if p.Published != 10 || p.Took != 6*time.Second {
			t.Errorf("%v events a second in %v, want 10 in 6 s", p.Published, p.Took)
		}
	}
}
