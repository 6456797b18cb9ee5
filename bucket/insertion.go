package bucket

import (
	"strconv"
	"strings"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// insertion stores events with ids of our own making that are due later: a
// transaction of plain commands, for half of what a script costs.
type insertion struct {
	of     *key.Lane
	events []*Event
	groups []group
}

// group is what goes to one bucket.
type group struct {
	bucket int
	events []*Event
	first  *Event // the one that Redis sorts first
}

func (s *insertion) lane() *key.Lane { return s.of }

// call is TIME, HSET, HINCRBY, then ZADD and ZRANGE (which shows the new head)
// for each bucket.
func (s *insertion) call() *script.Call {
	s.group()
	store := append(make([]any, 0, 2+2*len(s.events)), "hset", s.of.Pool)
	for _, e := range s.events {
		store = append(store, &e.ID, &e.Record)
	}
	commands := append(make([][]any, 0, 3+2*len(s.groups)),
		[]any{"time"}, store, []any{"hincrby", s.of.Stats, "published", len(s.events)})
	for _, g := range s.groups {
		name := s.of.Bucket(g.bucket)
		add := append(make([]any, 0, 2+2*len(g.events)), "zadd", name)
		for _, e := range g.events {
			add = append(add, &e.Due, &e.ID)
		}
		commands = append(commands, add, []any{"zrange", name, 0, 0})
	}
	return &script.Call{Name: "publish", Commands: commands}
}

// group sorts the events by bucket. They are few: [NewID] sees to that.
func (s *insertion) group() {
	index := make(map[int]int, 2)
	for _, e := range s.events {
		home := s.of.Home(e.ID)
		i, ok := index[home]
		if !ok {
			i = len(s.groups)
			index[home] = i
			s.groups = append(s.groups, group{bucket: home, first: e})
		}
		g := &s.groups[i]
		g.events = append(g.events, e)
		if e.Due < g.first.Due || e.Due == g.first.Due && e.ID < g.first.ID {
			g.first = e
		}
	}
}

// take sets the events' errors, and returns the alarm for the heads that moved
// earlier: "" if none did.
func (s *insertion) take(c *script.Call) (alarm string) {
	err := callError(c, s.of, "publish")
	for _, e := range s.events {
		e.Err = err
	}
	if err != nil {
		return ""
	}
	noteReplicas(c, s.of, s.events)
	for i, g := range s.groups {
		head, _ := c.Reply[4+2*i].([]any)
		if len(head) == 1 && head[0] == g.first.ID {
			alarm += " " + strconv.Itoa(g.bucket) + "=" + strconv.FormatInt(g.first.Due, 10)
		}
	}
	if alarm == "" {
		return ""
	}
	return micros(c.Reply[0]) + alarm
}

// micros joins the seconds and microseconds that TIME returns.
func micros(reply any) string {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return "0"
	}
	seconds, _ := parts[0].(string)
	rest, _ := parts[1].(string)
	return seconds + strings.Repeat("0", max(0, 6-len(rest))) + rest
}
