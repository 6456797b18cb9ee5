package readyqueue

import (
	"github.com/dueq-io/dueq/internal/script"
)

// ParseReply reads a reply of the claim script.
func (c Claim) ParseReply(reply []any) Claimed { return c.parse(reply) }

// TakeReply takes in a reply of the settle script, and returns the ids to settle
// once more.
func (s *Settlements) TakeReply(reply []any) (marked []*Settlement) {
	return s.take(&script.Call{Reply: reply})
}
