package dueq

import (
	"context"
	"time"
)

// Session is a process, more exactly a [Queue], that subscribes to topics.
type Session struct {
	ID       string
	Host     string
	PID      int
	Started  time.Time
	LastSeen time.Time // by the server's clock
	Topics   []string  // that it subscribes to
	Held     int       // events that it holds
}

// Sessions lists the sessions that were seen of late, in the order in which they
// started.
func (q *Queue) Sessions(_ context.Context) ([]Session, error) { return nil, errNotBuilt }
