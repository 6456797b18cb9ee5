package main

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

const (
	beanstalkPriority = 1024
	beanstalkTTR      = time.Minute // how long a handler may take
	// beanstalkConns is how many connections the callers share; with one for each
	// they are slower.
	beanstalkConns = 8
)

// beanstalkd is a work queue with a server of its own. Its delays are whole
// seconds, rounded up so that no event is early. A topic is a tube.
type beanstalkd struct {
	addr    string
	conns   chan *beanstalk.Conn // for callers; nil: not connected yet
	reserve []*beanstalk.Conn
	wg      sync.WaitGroup
	closing atomic.Bool

	mu  sync.Mutex
	err error // the first that a consumer met
}

func beanstalkMissing() string {
	if _, err := exec.LookPath("beanstalkd"); err != nil {
		return "no beanstalkd on PATH (Debian and Ubuntu: apt-get install -y beanstalkd; macOS: brew install beanstalkd)"
	}
	return ""
}

func startBeanstalk(ctx context.Context) (*host, error) {
	args := func(port string) []string { return []string{"-l", "127.0.0.1", "-p", port} }
	server, err := measure.Start(ctx, "beanstalkd", args, func(addr string) (int, error) {
		c, err := beanstalk.Dial("tcp", addr)
		if err != nil {
			return 0, err
		}
		stats, err := c.Stats()
		if err = errors.Join(err, c.Close()); err != nil {
			return 0, err
		}
		return strconv.Atoi(stats["pid"])
	})
	if err != nil {
		return nil, err
	}
	h := &host{server: server}
	conn, err := beanstalk.Dial("tcp", server.Addr())
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.meter = &beanstalkMeter{conn: conn, pid: server.PID()}
	stats, err := conn.Stats()
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.version = "beanstalkd " + strings.Trim(stats["version"], `"`)
	return h, nil
}

func openBeanstalk(addr string) (queue, error) {
	b := &beanstalkd{addr: addr, conns: make(chan *beanstalk.Conn, beanstalkConns)}
	for range beanstalkConns {
		b.conns <- nil
	}
	return b, nil
}

// borrow lends one of the callers' connections.
func (b *beanstalkd) borrow(do func(c *beanstalk.Conn) error) error {
	c := <-b.conns
	defer func() { b.conns <- c }()
	if c == nil {
		var err error
		if c, err = beanstalk.Dial("tcp", b.addr); err != nil {
			return err
		}
	}
	return do(c)
}

func (b *beanstalkd) publish(_ context.Context, body []byte, due time.Time) error {
	return b.borrow(func(c *beanstalk.Conn) error {
		delay := max(time.Until(due)+time.Second-1, 0).Truncate(time.Second)
		_, err := beanstalk.NewTube(c, load).Put(body, beanstalkPriority, delay, beanstalkTTR)
		return err
	})
}

func (b *beanstalkd) consume(_ context.Context, topics []string, handle func([]byte)) error {
	for range handlers {
		c, err := beanstalk.Dial("tcp", b.addr)
		if err != nil {
			return err
		}
		b.reserve = append(b.reserve, c)
		tubes := beanstalk.NewTubeSet(c, topics...)
		b.wg.Go(func() {
			err := handleAll(tubes, handle)
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.err == nil && !b.closing.Load() {
				b.err = err
			}
		})
	}
	return nil
}

// handleAll handles events until the connection is closed.
func handleAll(tubes *beanstalk.TubeSet, handle func([]byte)) error {
	for {
		id, body, err := tubes.Reserve(beanstalkTTR)
		if errors.Is(err, beanstalk.ErrTimeout) {
			continue
		}
		if err != nil {
			return err
		}
		handle(body)
		if err := tubes.Conn.Delete(id); err != nil {
			return err
		}
	}
}

func (b *beanstalkd) pending(context.Context) (n int, err error) {
	err = b.borrow(func(c *beanstalk.Conn) error {
		stats, err := beanstalk.NewTube(c, load).Stats()
		if errors.Is(err, beanstalk.ErrNotFound) {
			return nil
		}
		for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
			n += int(number(stats["current-jobs-"+state]))
		}
		return err
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	return n, errors.Join(err, b.err)
}

func (b *beanstalkd) Close() error {
	b.closing.Store(true)
	var errs []error
	for _, c := range b.reserve {
		errs = append(errs, c.Close())
	}
	b.wg.Wait()
	for range beanstalkConns {
		if c := <-b.conns; c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(append(errs, b.err)...)
}

// number is a whole number among statistics, or 0.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
