// Package roster says which sessions a namespace has, and when they were last
// seen.
package roster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

const (
	// MaxSessions is the most sessions that [List] returns.
	MaxSessions = 1000
	// dropBatch is the most sessions that one call drops.
	dropBatch = 100
)

//go:embed announce.lua
var announceSource string

//go:embed list.lua
var listSource string

var (
	announceScript = script.New(announceSource)
	listScript     = script.New(listSource)
)

// Session describes one.
type Session struct {
	ID      string        `json:"id"`
	Host    string        `json:"host"`
	PID     int           `json:"pid"`
	Started time.Time     `json:"started"`
	Keep    time.Duration `json:"keep"` // after which it is dropped unless it was seen again
	Topics  []string      `json:"topics"`
	More    int           `json:"more,omitempty"` // topics beyond these

	LastSeen time.Time `json:"-"` // set by [List]
}

// Entry is a session's place in its namespace. The zero value but for the
// namespace is ready for use, by one goroutine.
type Entry struct {
	Namespace string
	text      string // as it lies there
}

// Announce notes that the session is there now.
func (e *Entry) Announce(ctx context.Context, rdb redis.UniversalClient, s Session) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("roster: describe session %s: %w", s.ID, err)
	}
	return e.put(ctx, rdb, string(text), s.Keep)
}

// Withdraw notes that the session is there no more.
func (e *Entry) Withdraw(ctx context.Context, rdb redis.UniversalClient) error {
	return e.put(ctx, rdb, "", 0)
}

func (e *Entry) put(ctx context.Context, rdb redis.UniversalClient, text string, keep time.Duration) error {
	c := &script.Call{
		Script: announceScript, Keys: []string{key.Seen(e.Namespace)},
		Args: []any{text, e.text, keep.Milliseconds(), dropBatch},
	}
	if err := script.Run(ctx, rdb, c); err != nil {
		return fmt.Errorf("roster: announce in namespace %q: %w", e.Namespace, err)
	}
	e.text = text
	return nil
}

// List reads which sessions a namespace has: those seen last, if there are more
// than [MaxSessions].
func List(ctx context.Context, rdb redis.UniversalClient, ns string) ([]Session, error) {
	c := &script.Call{Script: listScript, Keys: []string{key.Seen(ns)}, Args: []any{MaxSessions}}
	if err := script.Run(ctx, rdb, c); err != nil {
		return nil, fmt.Errorf("roster: list sessions of namespace %q: %w", ns, err)
	}
	return parse(c.Reply), nil
}

// parse reads {description, when to drop it, …}. What is not ours is left out, and
// so are earlier descriptions of a session, which lie there if replies were lost.
func parse(reply []any) []Session {
	var list []Session
	seen := make(map[string]bool)
	for ; len(reply) > 1; reply = reply[2:] {
		text, _ := reply[0].(string)
		until, _ := reply[1].(string)
		var s Session
		drop, err := strconv.ParseFloat(until, 64)
		if err == nil {
			err = json.Unmarshal([]byte(text), &s)
		}
		if err == nil && !seen[s.ID] {
			seen[s.ID] = true
			s.LastSeen = time.UnixMilli(int64(drop)).Add(-s.Keep)
			list = append(list, s)
		}
	}
	return list
}
