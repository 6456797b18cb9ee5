package child

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNoRedis says that there is no server to start.
var ErrNoRedis = errors.New("neither redis-server nor valkey-server is on PATH (scripts/need redis-server installs one)")

// Redis is a redis-server, or else a valkey-server, that works in a folder, where
// server.log gets what it prints. It keeps nothing on disk unless args say so: they
// are further flags, such as "--appendonly", "yes", and win. The first may be a
// configuration file. The error is [ErrNoRedis].
func Redis(dir string, args ...string) (*Server, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		bin, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		var config []string
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			config, args = args[:1], args[1:]
		}
		flags := func(port string) []string {
			all := append(slices.Clip(config),
				"--port", port, "--bind", "127.0.0.1", "--dir", dir,
				"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
			return append(all, args...)
		}
		return &Server{Bin: bin, Args: flags, Ask: redisPID, Output: filepath.Join(dir, "server.log")}, nil
	}
	return nil, ErrNoRedis
}

// redisPID is the process id of a Redis that answers PING. It speaks the protocol
// itself because a client would retry, and log each refused connection.
func redisPID(addr string) (int, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err = conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	if _, err = io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+PONG" { // -LOADING while it reads its AOF
		return 0, errors.New("no PONG")
	}
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			return strconv.Atoi(id)
		}
	}
	return 0, errors.New("no process_id")
}
