package carrier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/inspect"
)

// auditEvery is after about how long a lane's events are counted again.
const auditEvery = 10 * time.Minute

// audits says when each lane's events are to be counted next.
type audits map[*Lane]time.Time

// next is a lane whose time has come, or nil. Any number of processes audit the
// same lanes: they spread that at random.
func (a audits) next(lanes []*Lane, now time.Time) *Lane {
	for _, l := range lanes {
		at, known := a[l]
		if !known || !at.After(now) {
			a[l] = now.Add(auditEvery/2 + rand.N(auditEvery))
		}
		if known && !at.After(now) {
			return l
		}
	}
	return nil
}

// audit counts the events of at most one lane, in one step, and warns if they do
// not lie in as many places.
func (c *Carrier) audit(ctx context.Context, a audits, now time.Time) error {
	l := a.next(c.all(), now)
	if l == nil {
		return nil
	}
	counts, err := inspect.Count(ctx, c.rdb, l.key)
	if err != nil {
		return fmt.Errorf("carrier: audit: %w", err)
	}
	if wrong := counts.Bodies - counts.Places(); wrong != 0 {
		l.metrics.Findings.Add(max(wrong, -wrong))
		c.log.Warn("some events lie nowhere, or twice, or have no body: Check tells which, Repair mends them",
			zap.String("topic", l.key.Topic), zap.String("lane", l.key.Tag),
			zap.Int64("events", counts.Bodies), zap.Int64("places", counts.Places()))
	}
	return nil
}
