package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// tick is the unit of the kernel's CPU times: USER_HZ is 100 on all platforms.
const tick = 10 * time.Millisecond

// beanstalkMeter reads what a beanstalkd and this process have used up: CPU and
// memory from /proc, which only Linux has, the rest from the server.
type beanstalkMeter struct {
	conn *beanstalk.Conn
	pid  int
}

type beanstalkReading struct {
	at             time.Time
	client, server time.Duration
	commands       int64
	connections    int64
	memory         int64 // resident bytes
}

// During runs do and tells what was used up.
func (m *beanstalkMeter) During(_ context.Context, do func() error) (measure.Spent, error) {
	from, err := m.read()
	if err != nil {
		return measure.Spent{}, err
	}
	if err := do(); err != nil {
		return measure.Spent{}, err
	}
	to, err := m.read()
	return measure.Spent{
		Wall: to.at.Sub(from.at), Client: to.client - from.client, Server: to.server - from.server,
		Commands: to.commands - from.commands, Memory: to.memory - from.memory, Connections: to.connections,
	}, err
}

// Close closes the meter's connection.
func (m *beanstalkMeter) Close() error { return m.conn.Close() }

func (m *beanstalkMeter) read() (beanstalkReading, error) {
	stats, err := m.conn.Stats()
	if err != nil {
		return beanstalkReading{}, fmt.Errorf("read the server's meters: %w", err)
	}
	r := beanstalkReading{at: time.Now(), client: measure.OwnCPU(), connections: number(stats["current-connections"]) - 1}
	for name, value := range stats {
		if strings.HasPrefix(name, "cmd-") && !strings.HasPrefix(name, "cmd-stats") {
			r.commands += number(value)
		}
	}
	r.server, r.memory, err = process(m.pid)
	return r, err
}

// process is the CPU time and the resident memory of a process.
func process(pid int) (cpu time.Duration, memory int64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// After the name, which may contain anything, in brackets: state is the 3rd
	// field, utime the 14th, stime the 15th, rss in pages the 24th.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 22 {
		return 0, 0, errors.New("/proc: too few fields")
	}
	cpu = time.Duration(number(fields[11])+number(fields[12])) * tick
	return cpu, number(fields[21]) * int64(os.Getpagesize()), nil
}
