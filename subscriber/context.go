package subscriber

import (
	"context"
	"sync"
	"time"
)

// handlerContext is the context of a function of the user's. The timer and the
// place among its parent's children cost more than the rest of a delivery, so
// they are made when somebody looks at the context; many handlers never do.
type handlerContext struct {
	parent   context.Context
	deadline time.Time

	mu     sync.Mutex
	inner  context.Context // nil: nobody has looked
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
	ended  bool
	cause  error
}

func newHandlerContext(parent context.Context, timeout time.Duration) *handlerContext {
	return &handlerContext{parent: parent, deadline: time.Now().Add(timeout)}
}

// end ends the context, once: only the first cause counts.
func (c *handlerContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.cause = true, cause
	if c.inner != nil {
		c.cancel(cause)
		c.stop()
	}
}

func (c *handlerContext) look() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		timed, stop := context.WithDeadlineCause(c.parent, c.deadline, ErrHandlerTimeout)
		c.inner, c.cancel = context.WithCancelCause(timed)
		c.stop = stop
		if c.ended {
			c.cancel(c.cause)
			c.stop()
		}
	}
	return c.inner
}

// Deadline is context.Context's, as are the others.
func (c *handlerContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c *handlerContext) Done() <-chan struct{}       { return c.look().Done() }
func (c *handlerContext) Err() error                  { return c.look().Err() }
func (c *handlerContext) Value(key any) any           { return c.look().Value(key) }
