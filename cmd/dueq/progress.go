package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// erase moves to the start of a terminal's line and empties it.
const erase = "\r\x1b[K"

// progress shows how far something is: on a terminal in one line that rewrites
// itself, elsewhere in a line per second.
type progress struct {
	w        io.Writer
	terminal bool
	last     time.Time // when sometimes has shown something

	mu    sync.Mutex
	shown bool // the terminal's line is not empty
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w) && os.Getenv("TERM") != "dumb", last: time.Now()}
}

// interval is how often to show.
func (p *progress) interval() time.Duration {
	if p.terminal {
		return 100 * time.Millisecond
	}
	return time.Second
}

// show replaces the line shown before, or adds one.
func (p *progress) show(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		line = erase + line
	} else {
		line += "\n"
	}
	_, _ = io.WriteString(p.w, line)
	p.shown = p.terminal
}

// sometimes shows a line if it is time for one.
func (p *progress) sometimes(line func() string) {
	if now := time.Now(); now.Sub(p.last) > p.interval() {
		p.last = now
		p.show(line())
	}
}

// clear removes the line from the terminal, for what is printed next.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLine()
}

// clearLine is clear for a caller that holds mu.
func (p *progress) clearLine() {
	if p.shown {
		_, _ = io.WriteString(p.w, erase)
	}
	p.shown = false
}

// around is a writer to w, the progress's own or another on the same screen, that
// does not mix with the line.
func (p *progress) around(w io.Writer) io.Writer { return &besides{p, w} }

type besides struct {
	p *progress
	w io.Writer
}

func (b *besides) Write(text []byte) (int, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.p.clearLine()
	return b.w.Write(text)
}

// bar shows how much of something is done.
func bar(done, all int64) string {
	const width = 30
	share := min(1, float64(done)/float64(all))
	full := int(share * width)
	return fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share)
}
