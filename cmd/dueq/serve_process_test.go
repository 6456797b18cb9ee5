package main_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// process is a `dueq serve` in a process of its own.
type process struct {
	*served
	cmd   *exec.Cmd
	ended chan error
}

// serveProcess starts one on a free port. It is killed when the test ends.
func serveProcess(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"serve", "--addr", "127.0.0.1:0", "--redis", ""}, args...)...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1"), env...)
	s := &served{t: t, client: &http.Client{Transport: &http.Transport{}}}
	cmd.Stderr = s
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{served: s, cmd: cmd, ended: make(chan error, 1)}
	lines := bufio.NewReader(out)
	s.greets, err = lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		p.ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error says that it has ended
		_ = p.exit()
		s.client.CloseIdleConnections()
	})
	if err != nil {
		t.Fatalf("no greeting: %v\n%s", err, s.text())
	}
	s.url = strings.TrimSuffix(strings.Fields(s.greets)[2], "/")
	return p
}

// exit waits for the process to end.
func (p *process) exit() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(time.Minute):
		p.t.Fatalf("it does not end:\n%s", p.text())
		return nil
	}
}

// eventually asks for a path until the answer has the status and the text.
func (s *served) eventually(status int, text, path string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		code, got := s.call("GET", path, "")
		if code == status && strings.Contains(got, text) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d %s, want %d %q", path, code, got, status, text)
		}
	}
}

// SIGTERM: /readyz fails while the rest goes on, claims that wait return, what is
// pushed and what is claimed can finish, and then the process ends well.
func TestServeDrainsOnSIGTERM(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	arrived, finish := make(chan struct{}), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-finish
	}))
	t.Cleanup(receiver.Close)
	p := serveProcess(t, nil, "--redis", "redis://"+redis.Addr(), "--push", "push="+receiver.URL)
	p.want(200, `"ok"`, "GET", "/readyz", "")
	p.want(201, "", "POST", "/v1/topics/push/events", `{}`)
	<-arrived
	p.want(201, "", "POST", "/v1/topics/pull/events", `{}`)
	held := p.claim("pull")
	waited := make(chan string, 1)
	go func() {
		_, got := p.call("POST", "/v1/topics/idle/claim", `{"wait": "1m"}`)
		waited <- got
	}()
	p.eventually(200, "idle", "/v1/topics") // the claim waits now

	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.eventually(503, "draining", "/readyz")
	p.want(200, `"ok"`, "GET", "/healthz", "")
	if got := <-waited; got != "{\"events\":[]}\n" {
		t.Errorf("the claim that waited: %s", got)
	}
	p.want(503, "shutting-down", "POST", "/v1/topics/pull/claim", "")
	p.want(204, "", "POST", "/v1/deliveries/"+held+"/ack", "")
	select {
	case err := <-p.ended:
		t.Fatalf("it ended while a push ran: %v\n%s", err, p.text())
	default:
	}
	close(finish)
	if err := p.exit(); err != nil {
		t.Fatalf("%v\n%s", err, p.text())
	}
	if !strings.Contains(p.text(), `"msg":"ended"`) {
		t.Errorf("log:\n%s", p.text())
	}
	q, err := dueq.New(redis.Client(), dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"push", "pull"} {
		stats, err := q.Stats(t.Context(), topic)
		if err != nil || stats.Acked != 1 || stats.Scheduled+stats.Ready+stats.Leased+stats.Dead != 0 {
			t.Errorf("topic %s: %+v, %v", topic, stats, err)
		}
	}
}

// A signal that comes twice, as timeout(1) sends it, is one; a later one ends the
// process at once, whatever it holds.
func TestServeSignalledAgain(t *testing.T) {
	t.Parallel()
	p := serveProcess(t, nil, "--shutdown-timeout", "1h")
	p.want(201, "", "POST", "/v1/topics/t/events", `{}`)
	p.claim("t")
	first := time.Now()
	signal := func() {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	signal()
	p.eventually(503, "draining", "/readyz")
	if signal(); time.Since(first) < command.SameSignal {
		p.want(200, `"ok"`, "GET", "/healthz", "")
	}
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-p.ended:
			p.ended <- err
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-tick.C:
			signal()
		case <-deadline:
			t.Fatalf("it does not end:\n%s", p.text())
		}
	}
}

// What a process has handed out comes again from another one when it is killed,
// and its receipts are worth nothing there.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	first := serveProcess(t, nil, "--redis", "redis://"+redis.Addr())
	first.want(201, "", "POST", "/v1/topics/t/events", `{"id": "a"}`)
	held := first.claim("t")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second := serveProcess(t, nil, "--redis", "redis://"+redis.Addr())
	second.want(410, "receipt-foreign", "POST", "/v1/deliveries/"+held+"/ack", "")
	second.want(200, `"attempt":2`, "POST", "/v1/topics/t/claim", `{"wait": "1m"}`)
}
