package measure

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Meter reads what a Redis server and this process have used up, over a
// connection of its own.
type Meter struct {
	rdb *redis.Client
}

// NewMeter is a meter of the server that a client with such options reaches. It
// connects when it is first used.
func NewMeter(at *redis.Options) *Meter {
	single := *at
	single.PoolSize, single.MinIdleConns, single.MaxIdleConns = 1, 0, 0
	return &Meter{rdb: redis.NewClient(&single)}
}

// reading is what has been used up at one moment.
type reading struct {
	at          time.Time
	client      time.Duration // CPU of this process
	redisBefore time.Duration // CPU of the server, before it told the rest
	redisAfter  time.Duration // and after
	commands    int64         // the server ran, scripts' own included, without the meter's
	scripts     int64         // the server ran
	memory      int64         // bytes, without the clients' buffers
	connections int64         // without the meter's
}

// Spent is what was used up between two readings.
type Spent struct {
	Wall        time.Duration
	Client      time.Duration // CPU of this process
	Server      time.Duration // CPU of the server
	Commands    int64         // the server ran, scripts' own included
	Scripts     int64         // the server ran
	Memory      int64         // bytes that the server has taken up
	Connections int64         // that there are at the end
}

// Close closes the meter's connection.
func (m *Meter) Close() error { return m.rdb.Close() }

// Info is a section of the server's INFO by field.
func (m *Meter) Info(ctx context.Context, section string) (map[string]string, error) {
	text, err := m.rdb.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("info %s: %w", section, err)
	}
	return parseInfo(text), nil
}

func (m *Meter) read(ctx context.Context) (reading, error) {
	pipe := m.rdb.Pipeline()
	sections := []string{"cpu", "stats", "commandstats", "memory", "clients", "cpu"}
	replies := make([]*redis.StringCmd, len(sections))
	for i, s := range sections {
		replies[i] = pipe.Info(ctx, s)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return reading{}, fmt.Errorf("read the server's meters: %w", err)
	}
	stats, calls := parseInfo(replies[1].Val()), parseInfo(replies[2].Val())
	memory, clients := parseInfo(replies[3].Val()), parseInfo(replies[4].Val())
	return reading{
		at: time.Now(), client: OwnCPU(),
		redisBefore: cpuOf(replies[0].Val()), redisAfter: cpuOf(replies[5].Val()),
		commands:    number(stats["total_commands_processed"]) - callsOf(calls, "info", "config", "slowlog", "ping"),
		scripts:     callsOf(calls, "evalsha", "eval"),
		memory:      number(memory["used_memory"]) - number(memory["mem_clients_normal"]),
		connections: number(clients["connected_clients"]) - 1,
	}, nil
}

// since is what was used up since an earlier reading.
func (m *Meter) since(ctx context.Context, from reading) (Spent, error) {
	to, err := m.read(ctx)
	return Spent{
		Wall: to.at.Sub(from.at), Client: to.client - from.client, Server: to.redisBefore - from.redisAfter,
		Commands: to.commands - from.commands, Scripts: to.scripts - from.scripts,
		Memory: to.memory - from.memory, Connections: to.connections,
	}, err
}

// During runs do and tells what was used up.
func (m *Meter) During(ctx context.Context, do func() error) (Spent, error) {
	from, err := m.read(ctx)
	if err != nil {
		return Spent{}, err
	}
	if err := do(); err != nil {
		return Spent{}, err
	}
	return m.since(ctx, from)
}

// OwnCPU is the CPU time of this process.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func cpuOf(info string) time.Duration {
	var sum float64
	fields := parseInfo(info)
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, _ := strconv.ParseFloat(fields[name], 64) // a server that does not tell used none
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// callsOf sums the calls of commands in INFO commandstats:
// cmdstat_config|set:calls=3,usec=…
func callsOf(stats map[string]string, commands ...string) int64 {
	var sum int64
	for field, values := range stats {
		name, _, _ := strings.Cut(strings.TrimPrefix(field, "cmdstat_"), "|")
		for _, c := range commands {
			if name == c {
				calls, _, _ := strings.Cut(strings.TrimPrefix(values, "calls="), ",")
				sum += number(calls)
			}
		}
	}
	return sum
}

func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// number is a whole number in INFO, or 0 where a server has no such field.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
