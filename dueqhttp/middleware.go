package dueqhttp

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

const (
	requestIDHeader = "X-Request-Id"
	maxRequestID    = 128
	// bodyTimeout is how long a request's body may take to arrive.
	bodyTimeout = 30 * time.Second
	// clientGone is the status that the log has for a request whose sender went
	// away before it was answered.
	clientGone = 499
)

// response remembers what was answered.
type response struct {
	http.ResponseWriter
	status int // 0: nothing yet
	size   int64
}

// Unwrap is for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader remembers the status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts what is written.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.size += int64(n)
	return n, err
}

// logged gives every request an id, and the log a line for it.
func (h *Handler) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get(requestIDHeader)
		if !goodRequestID(id) {
			id = rand.Text()
		}
		rw.Header().Set(requestIDHeader, id)
		w := &response{ResponseWriter: rw}
		defer func() {
			switch {
			case w.status == 0 && r.Context().Err() != nil:
				w.status = clientGone
			case w.status == 0:
				w.status = http.StatusOK // the server will say so
			}
			h.log(r, w, id, time.Since(began))
		}()
		next.ServeHTTP(w, r)
	})
}

// log logs a request. The path itself may hold receipts, so the route stands for it.
func (h *Handler) log(r *http.Request, w *response, id string, took time.Duration) {
	level := zapcore.InfoLevel
	switch {
	case w.status >= http.StatusInternalServerError:
		level = zapcore.ErrorLevel
	case strings.HasSuffix(r.Pattern, "/healthz"), strings.HasSuffix(r.Pattern, "/readyz"):
		level = zapcore.DebugLevel
	}
	line := h.opts.Logger.Check(level, "request")
	if line == nil {
		return
	}
	fields := []zap.Field{
		zap.String("method", r.Method), zap.String("route", r.Pattern), zap.Int("status", w.status),
		zap.Int64("bytes", w.size), zap.Duration("took", took),
		zap.String("remote", r.RemoteAddr), zap.String("request_id", id),
	}
	if topic := r.PathValue("topic"); topic != "" {
		fields = append(fields, zap.String("topic", topic))
	}
	line.Write(fields...)
}

func goodRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	return !strings.ContainsFunc(id, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune("-._:/+=", c)
	})
}

// recovered answers a request whose handler panics.
func (h *Handler) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(reason) // how a handler says that the connection is to be cut
			}
			h.opts.Logger.Error("panic", zap.Any("reason", reason), zap.ByteString("stack", debug.Stack()),
				zap.String("request_id", w.Header().Get(requestIDHeader)))
			if answer, ok := w.(*response); ok && answer.status != 0 {
				panic(http.ErrAbortHandler) // the client must not take a half for the whole
			}
			problem.Internal.New("the log has more under this request's id").Write(w)
		}()
		next.ServeHTTP(w, r)
	})
}

// timed gives a request's body some time to arrive. It does not use the server's
// ReadTimeout, which ends requests that are long since read and wait for events.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not supported: the server's own timeouts hold
			r.Body = &timedBody{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline once it is read.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads from the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // likewise
	}
	return n, err
}

// guarded keeps other sites' pages away from a service that a browser can reach.
func (h *Handler) guarded(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.CrossOrigin.New("%s from origin %.200q is refused", r.Method, r.Header.Get("Origin")).Write(w)
	}))
	next = origin.Handler(next)
	if len(h.opts.Hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !slices.ContainsFunc(h.opts.Hosts, isHost(r.Host)) {
			problem.WrongHost.New("the request is for host %.200q", r.Host).Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isHost reports for a name whether it is the host of a request, whatever its port.
func isHost(host string) func(name string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return func(name string) bool { return strings.EqualFold(strings.Trim(name, "[]"), host) }
}
