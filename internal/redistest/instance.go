package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
	portAttempts = 10
)

var (
	errNoServer = errors.New("redistest: neither redis-server nor valkey-server is on PATH")
	errEnded    = errors.New("server ended at once")
)

// instance is a server with a port and a folder of its own, running or not.
type instance struct {
	bin, dir string
	config   string // a configuration file, or ""
	port     int
	args     []string
	proc     *process // nil while it is not running
}

// startInstance starts a server on a free port, with a configuration file unless
// config is "". Its error wraps errNoServer when there is no server binary.
func startInstance(dir, config string, args []string) (*instance, error) {
	bin, err := serverBinary()
	if err != nil {
		return nil, err
	}
	for range portAttempts {
		in := &instance{bin: bin, dir: dir, config: config, port: freePort(), args: args}
		if err = in.start(); !errors.Is(err, errEnded) { // errEnded: another program may have taken the port
			return in, err
		}
	}
	return nil, err
}

// start runs the server and waits until it answers.
func (in *instance) start() error {
	out, err := os.OpenFile(in.outputFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("redistest: open server output: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own copy
	var flags []string
	if in.config != "" {
		flags = append(flags, in.config)
	}
	flags = append(flags,
		"--port", strconv.Itoa(in.port), "--bind", "127.0.0.1", "--dir", in.dir,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
	in.proc, err = startProcess(in.bin, append(flags, in.args...), out)
	if err != nil {
		return fmt.Errorf("redistest: start %s: %w", in.bin, err)
	}
	if err = in.await(); err != nil {
		in.stop(syscall.SIGKILL)
		return fmt.Errorf("redistest: start %s %q on %s: %w\n%s", in.bin, in.args, in.addr(), err, in.outputTail())
	}
	return nil
}

// await returns nil once the server answers, or why it does not.
func (in *instance) await() error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(in.addr(), in.proc.cmd.Process.Pid) {
			return nil
		}
		select {
		case <-in.proc.done:
			return errEnded
		case <-deadline.C:
			return fmt.Errorf("no answer in %v", startTimeout)
		case <-tick.C:
		}
	}
}

// stop sends sig and waits until the server has ended; nothing happens if it
// was not running.
func (in *instance) stop(sig syscall.Signal) {
	if in.proc != nil {
		in.proc.end(sig, stopTimeout)
		in.proc = nil
	}
}

func (in *instance) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(in.port)) }

func (in *instance) outputFile() string { return filepath.Join(in.dir, "server.log") }

// outputTail is the end of what the server printed.
func (in *instance) outputTail() []byte {
	b, err := os.ReadFile(in.outputFile())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(b[max(0, len(b)-2000):])
}

func serverBinary() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", errNoServer
}

// freePort is a port that nobody listened on a moment ago. It lies below the
// ports that systems give to outgoing connections (from 32768 on), so that it
// stays free while a server is down, and so does port+10000, the cluster bus.
func freePort() int {
	for {
		port := 10_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if l.Close() == nil {
			return port
		}
	}
}
