package redistest

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// answers reports whether the server at addr answers PING and is the process
// pid, not another one that took the port first. It speaks the protocol itself
// because a client would retry, and log each refused connection.
func answers(addr string, pid int) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if err = conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err = io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
		return false
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+PONG" { // -LOADING while it reads its AOF
		return false
	}
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			return id == strconv.Itoa(pid)
		}
	}
	return false
}
