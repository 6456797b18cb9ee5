package api

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

const (
	// maxHeld is the most claimed events that one process keeps.
	maxHeld = 100_000
	// sweepEvery is how often deliveries are looked for that ended by themselves.
	sweepEvery = 10 * time.Second
	// processLength is the length of a receipt's part that names the process.
	processLength = 8
)

// receipts are the deliveries that callers hold. A receipt cannot be guessed, and
// says of which process it is.
type receipts struct {
	process string

	mu    sync.Mutex
	held  map[string]*dueq.Delivery
	sweep *time.Timer // runs while something is held
}

func newReceipts() *receipts {
	return &receipts{process: rand.Text()[:processLength], held: make(map[string]*dueq.Delivery)}
}

// room is how many more can be held.
func (r *receipts) room() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maxHeld - len(r.held)
}

// add gives each delivery a receipt.
func (r *receipts) add(deliveries []*dueq.Delivery) []string {
	texts := make([]string, len(deliveries))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range deliveries {
		texts[i] = r.process + "-" + rand.Text()
		r.held[texts[i]] = d
	}
	if r.sweep == nil && len(r.held) > 0 {
		r.sweep = time.AfterFunc(sweepEvery, r.forgetEnded)
	}
	return texts
}

// find returns the delivery of a receipt.
func (r *receipts) find(receipt string) (*dueq.Delivery, error) {
	process, _, ok := strings.Cut(receipt, "-")
	switch {
	case !ok || len(receipt) != processLength+1+len(rand.Text()):
		return nil, invalid("receipt", "is %q, which is none", cut(receipt))
	case process != r.process:
		return nil, problem.ReceiptForeign.New("another process of the service gave the receipt %s…, or this one "+
			"before it was restarted: settle where you claimed", process)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.held[receipt]
	if d == nil {
		return nil, problem.ReceiptEnded.New("it was settled before, or its visibility time has passed")
	}
	return d, nil
}

// forget forgets receipts whose deliveries have ended.
func (r *receipts) forget(texts ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, receipt := range texts {
		delete(r.held, receipt)
	}
}

// forgetEnded forgets the deliveries that ended by themselves.
func (r *receipts) forgetEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for receipt, d := range r.held {
		select {
		case <-d.Done():
			delete(r.held, receipt)
		default:
		}
	}
	if len(r.held) == 0 {
		r.sweep = nil
		return
	}
	r.sweep.Reset(sweepEvery)
}
