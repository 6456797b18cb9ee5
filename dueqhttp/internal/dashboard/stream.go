package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dueq-io/dueq"
)

const (
	eventStream = "text/event-stream"

	// writeTimeout is how long a browser may take to read an update.
	writeTimeout = 10 * time.Second
	// keepalive is how often something is sent, so that proxies keep the stream.
	keepalive = 15 * time.Second
)

var errTooMany = errors.New("too many pages are open")

// stream sends a page's main part now, and whenever it has changed, as
// server-sent events: "page" with HTML, or "trouble" with a word about it.
func (d *dashboard) stream(w http.ResponseWriter, r *http.Request, view func(*http.Request) (*page, error)) {
	defer d.streams.Add(-1)
	if d.streams.Add(1) > int64(d.opts.Streams) || d.over() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, errTooMany.Error(), http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // for nginx
	s := &stream{w: w, control: http.NewResponseController(w)}
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }() // as it was for what follows on the connection
	tick := time.NewTicker(d.opts.Every)
	defer tick.Stop()
	for {
		if err := s.send(d.update(r, view)); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-d.opts.Done:
			return
		}
	}
}

// over reports whether the server shuts down.
func (d *dashboard) over() bool {
	select {
	case <-d.opts.Done:
		return true
	default:
		return false
	}
}

// update is the next event of a stream.
func (d *dashboard) update(r *http.Request, view func(*http.Request) (*page, error)) (name string, data []byte) {
	p, err := view(r)
	if errors.Is(err, dueq.ErrNotFound) {
		p, _ = trouble(r, err)
		err = nil
	}
	if err == nil {
		var text []byte
		if text, err = d.execute(r, "main", p); err == nil {
			return "page", text
		}
	}
	return "trouble", []byte(strings.Join(strings.Fields(err.Error()), " "))
}

// stream is an open stream.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    []byte
	sent    time.Time
}

// send writes an event, unless it is the same as the last one.
func (s *stream) send(name string, data []byte) error {
	var text bytes.Buffer
	switch {
	case !bytes.Equal(data, s.last):
		fmt.Fprintf(&text, "event: %s\n", name)
		safe := bytes.ReplaceAll(data, []byte("\r"), []byte("&#13;")) // which would end a line
		for line := range bytes.Lines(safe) {
			fmt.Fprintf(&text, "data: %s\n", bytes.TrimSuffix(line, []byte("\n")))
		}
		text.WriteString("\n")
	case time.Since(s.sent) > keepalive:
		text.WriteString(": still here\n\n")
	default:
		return nil
	}
	s.last, s.sent = data, time.Now()
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // it may not be known here
	if _, err := s.w.Write(text.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}
