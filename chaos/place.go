package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
)

// exitTime is how long a worker may take to shut down.
const exitTime = 20 * time.Second

// place is where one worker runs at a time.
type place struct {
	index int

	mu   sync.Mutex // held while a fault lasts
	name string     // of the worker: "w1.2" is the second in place 1
	born int
	proc *process
	gone chan struct{} // closed when the program wants the process to end
}

// linkName is also how faults name all workers that run in one place.
func linkName(i int) string { return fmt.Sprint("w", i) }

// pulled are the topics that the place's worker consumes: one, another one after
// each restart, and not the one that the next place's does.
func (p *place) pulled() []string {
	n := (p.index + p.born) % len(topics)
	return topics[n : n+1]
}

// replicas is how many replicas must have what the place's worker publishes: one,
// or none after each other restart, where there are any.
func (p *place) replicas(s shape) int {
	if s == single {
		return 0
	}
	return (p.index + p.born) % 2
}

// begin starts a worker in a place. The caller holds its mu, if faults are made.
func (a *arena) begin(p *place) error {
	p.born++
	p.name = fmt.Sprint(linkName(p.index), ".", p.born)
	rate := a.rate / a.workers
	if p.index < a.rate%a.workers {
		rate++
	}
	config, err := json.Marshal(workerConfig{
		Name: p.name, Redis: a.shape, Addrs: a.addrs(p.index), Rate: rate, Replicas: p.replicas(a.shape),
		History: filepath.Join(a.dir, p.name+history.Ext), Pulled: p.pulled(),
	})
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(a.dir, p.name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own copy
	if p.proc, err = startProcess(out, a.program, workerFlag, string(config)); err != nil {
		return err
	}
	p.gone = make(chan struct{})
	go a.mourn(p.name, p.proc, p.gone)
	return nil
}

// mourn notes when a worker ends that nobody wanted to end.
func (a *arena) mourn(name string, proc *process, gone <-chan struct{}) {
	<-proc.Done()
	select {
	case <-gone:
		return
	default:
	}
	a.fail(fmt.Errorf("worker %s ended by itself: %w: %s", name, proc.Err(), a.logTail(name)))
}

// logTail is the end of what a worker has printed: why it crashed.
func (a *arena) logTail(name string) []byte {
	text, err := os.ReadFile(filepath.Join(a.dir, name+".log"))
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-4000):]
}

// endWorkers shuts all workers down.
func (a *arena) endWorkers() {
	for _, p := range a.places {
		close(p.gone)
		p.proc.Signal(syscall.SIGTERM)
	}
	for _, p := range a.places {
		if !p.proc.Wait(exitTime) {
			a.breach(fmt.Sprintf("worker %s does not end", p.name))
			p.proc.Kill()
		}
		if err := p.proc.failed(); err != nil {
			a.breach(fmt.Sprintf("worker %s: %v: %s", p.name, err, a.logTail(p.name)))
		}
	}
}
