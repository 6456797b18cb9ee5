package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
)

// make makes the fault of a step, and heals it. A step whose turn comes when the
// time is over, which is when ctx ends, does nothing. run ends with the run.
func (a *arena) make(run, ctx context.Context, s step) error {
	switch s.target {
	case aWorker:
		return a.hitWorker(ctx, s)
	case aLink:
		return a.hitLinks(ctx, s)
	case theMemory:
		return a.hitMemory(ctx, s)
	case aNode:
		return a.hitNodes(run, ctx, s)
	default:
		return a.hitServer(ctx, s)
	}
}

// record writes that a fault begins, and returns what writes that it is over.
func (a *arena) record(s step, target, mode, text string) (healed func()) {
	r := history.Record{Kind: history.Fault, Op: a.history.Op(), Name: s.name, Target: target, Mode: mode, Text: text}
	a.history.Write(r)
	if a.verbose {
		if target == "" {
			target = "everybody"
		}
		fmt.Fprintf(a.progress, "chaos: %s: %s, for %v %s\n", s.name, target, s.lasts.Round(time.Millisecond), text)
	}
	return func() {
		r.Kind, r.At = history.Healed, 0
		a.history.Write(r)
	}
}

func (a *arena) hitWorker(ctx context.Context, s step) error {
	p := a.places[s.worker]
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	healed := a.record(s, p.name, "", "")
	switch s.name {
	case "pause", "freeze":
		p.proc.Signal(syscall.SIGSTOP)
		pause(ctx, s.lasts)
		p.proc.Signal(syscall.SIGCONT)
		healed()
		return nil
	case "kill":
		close(p.gone)
		p.proc.Kill()
	case "term":
		close(p.gone)
		killed := history.Record{Kind: history.Fault, Op: a.history.Op(), Name: history.Kill, Target: p.name, At: time.Now().UnixNano()}
		p.proc.Signal(syscall.SIGTERM)
		if !p.proc.Wait(exitTime) {
			a.breach(fmt.Sprintf("worker %s does not end within %v of SIGTERM", p.name, exitTime))
			p.proc.Kill()
		}
		if err := p.proc.failed(); err != nil {
			a.breach(fmt.Sprintf("worker %s: %v: %s", p.name, err, a.logTail(p.name)))
		} else if p.proc.Err() != nil { // it did not know the signal yet
			a.history.Write(killed)
			killed.Kind, killed.At = history.Healed, 0
			a.history.Write(killed)
		}
	}
	healed()
	pause(ctx, s.lasts)
	return a.begin(p)
}

func (a *arena) hitLinks(ctx context.Context, s step) error {
	links, target := a.links, ""
	if s.worker >= 0 {
		links, target = a.links[s.worker:s.worker+1], linkName(s.worker)
	}
	for _, l := range links {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	if ctx.Err() != nil {
		return nil
	}
	toxic := toxicOf(s)
	healed := a.record(s, target, "", toxic)
	defer healed()
	for _, l := range links {
		if toxic == "" {
			l.cut()
		} else if err := l.spoil(toxic); err != nil {
			return err
		}
	}
	pause(ctx, s.lasts)
	for _, l := range links {
		heal := l.clear
		if toxic == "" {
			heal = l.mend
		}
		if err := heal(); err != nil {
			return err
		}
	}
	return nil
}

// toxicOf is what a proxy is to do, in its own words; "" is to cut.
func toxicOf(s step) string {
	stream := []string{"upstream", "downstream"}[s.dice%2]
	toxic := func(kind, attributes string) string {
		return fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, attributes)
	}
	more := s.dice / 2
	switch s.name {
	case "half":
		return toxic("timeout", `"timeout":0`)
	case "lag":
		return toxic("latency", fmt.Sprintf(`"latency":%d,"jitter":%d`, 50+more%200, more%100))
	case "narrow":
		return toxic("bandwidth", fmt.Sprintf(`"rate":%d`, 4+more%30))
	}
	return ""
}

func (a *arena) hitServer(ctx context.Context, s step) error {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	one, ctx := a.redis.nodes[0], context.WithoutCancel(ctx)
	healed := a.record(s, "", one.mode, "")
	defer healed()
	switch s.name {
	case "client-kill":
		return a.redis.all(func(node *server) error {
			return node.rdb.Do(ctx, "CLIENT", "KILL", "TYPE", []string{"normal", "pubsub"}[s.dice%2], "SKIPME", "yes").Err()
		})
	case "flush":
		return a.redis.all(func(node *server) error { return node.rdb.ScriptFlush(ctx).Err() })
	case "server-stop":
		one.signal(syscall.SIGSTOP)
		pause(ctx, s.lasts)
		one.signal(syscall.SIGCONT)
		return nil
	default: // server-kill
		one.kill()
		pause(ctx, s.lasts)
		return one.start(ctx)
	}
}

// hitMemory sets a limit or a policy, never both: together they would evict.
func (a *arena) hitMemory(ctx context.Context, s step) error {
	a.memory.Lock()
	defer a.memory.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	name, bad, good := "maxmemory", "100kb", "0"
	if s.name == "policy" {
		name, bad, good = "maxmemory-policy", "allkeys-lru", "noeviction"
	}
	healed := a.record(s, "", "", "")
	defer healed()
	set := func(value string) error {
		a.serverMu.Lock()
		defer a.serverMu.Unlock()
		return a.redis.nodes[0].config(context.WithoutCancel(ctx), name, value)
	}
	if err := set(bad); err != nil {
		return err
	}
	pause(ctx, s.lasts)
	return set(good)
}
