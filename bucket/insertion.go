package bucket

import (
	_ "embed"
	"strconv"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

//go:embed alarm.lua
var alarmSource string

var alarmScript = script.New(alarmSource)

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

// call is HSET, then ZADD and ZRANGE (which shows the new head) for each
// bucket, then HINCRBY.
func (s *insertion) call() *script.Call {
	s.group()
	store := append(make([]any, 0, 2+2*len(s.events)), "hset", s.of.Pool)
	for _, e := range s.events {
		store = append(store, &e.ID, &e.Record)
	}
	commands := append(make([][]any, 0, 2+2*len(s.groups)), store)
	for _, g := range s.groups {
		name := s.of.Bucket(g.bucket)
		add := append(make([]any, 0, 2+2*len(g.events)), "zadd", name)
		for _, e := range g.events {
			add = append(add, &e.Due, &e.ID)
		}
		commands = append(commands, add, []any{"zrange", name, 0, 0})
	}
	commands = append(commands, []any{"hincrby", s.of.Stats, "published", len(s.events)})
	return &script.Call{Commands: commands}
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

func (s *insertion) take(c *script.Call) (alarm *script.Call) {
	err := callError(c, s.of, "publish")
	for _, e := range s.events {
		e.Err = err
	}
	if err != nil {
		return nil
	}
	var heads []any
	for i, g := range s.groups {
		head, _ := c.Reply[2+2*i].([]any)
		if len(head) == 1 && head[0] == g.first.ID {
			heads = append(heads, strconv.Itoa(g.bucket)+"="+strconv.FormatInt(g.first.Due, 10))
		}
	}
	if heads == nil {
		return nil
	}
	return &script.Call{Script: alarmScript, Keys: []string{s.of.Pool}, Args: append([]any{s.of.Alarm}, heads...)}
}
