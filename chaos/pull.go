package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/chaos/history"
)

const (
	claimers   = 3 // of each topic that a worker consumes
	mostClaims = 12
	mostHeld   = 30 // by one claimer
)

// pull claims events until the queue is shut down. Those who hold them are among
// loops, and end soon once hands has ended.
func (w *worker) pull(hands context.Context, c *dueq.Consumer, loops *sync.WaitGroup) {
	free := make(chan struct{}, mostHeld)
	for {
		visibility := lease/8 + rand.N(lease)
		ctx, cancel := context.WithTimeout(hands, time.Millisecond+rand.N(lease))
		got, err := c.Claim(ctx, 1+rand.IntN(mostClaims), visibility)
		cancel()
		switch {
		case errors.Is(err, dueq.ErrShutDown):
			return
		case err != nil:
			w.history.Write(history.Record{Kind: history.Noted, Text: "claim: " + err.Error()})
			return
		}
		for _, d := range got {
			r := w.delivered(history.Handle, d.Event)
			r.Visible = visibility.Milliseconds()
			w.history.Write(r)
			free <- struct{}{}
			loops.Go(func() {
				w.hold(hands, d, r)
				<-free
			})
		}
	}
}

// hold does what the dice say with a claimed event, and records it.
func (w *worker) hold(hands context.Context, d *dueq.Delivery, r history.Record) {
	visibility := time.Duration(r.Visible) * time.Millisecond
	ack := func() { w.settle(r, history.OK, 0, d.Ack) }
	switch dice := rand.IntN(100); {
	case dice < 55:
		ack()
	case dice < 65:
		pause(hands, rand.N(visibility))
		ack()
	case dice < 71:
		after := time.Duration(50+rand.IntN(500)) * time.Millisecond
		w.settle(r, history.Failed, after, func(ctx context.Context) error { return d.Retry(ctx, after, errBroken) })
	case dice < 75:
		after := time.Duration(d.Attempt) * backoffStep
		w.settle(r, history.Failed, after, func(ctx context.Context) error { return d.Retry(ctx, -1, nil) })
	case dice < 77:
		w.settle(r, history.Skip, 0, func(ctx context.Context) error { return d.Fail(ctx, errBroken) })
	case dice < 83:
		w.settle(r, history.Released, 0, d.Release)
	case dice < 90:
		w.extend(hands, d, r)
		ack()
	case dice < 95:
		pause(hands, visibility+rand.N(lease/4))
		ack()
	default: // nobody settles it
		select {
		case <-d.Done():
			w.history.Write(history.Record{Kind: history.ContextEnded, Op: r.Op, Topic: r.Topic, ID: r.ID})
		case <-hands.Done():
		}
	}
}

// extend holds an event for longer than it was claimed for.
func (w *worker) extend(hands context.Context, d *dueq.Delivery, r history.Record) {
	for visibility := time.Duration(r.Visible) * time.Millisecond; rand.IntN(3) > 0; {
		if !pause(hands, rand.N(visibility)) {
			return
		}
		visibility = lease/8 + rand.N(lease)
		longer := history.Record{
			At: time.Now().UnixNano(), Kind: history.Extended, Op: r.Op, Topic: r.Topic, ID: r.ID, Visible: visibility.Milliseconds(),
		}
		if d.Extend(visibility) != nil {
			return
		}
		w.history.Write(longer)
	}
}

// settle tells the queue what became of an event, now and then without the
// patience to hear that it knows.
func (w *worker) settle(r history.Record, o history.Outcome, after time.Duration, tell func(context.Context) error) {
	r.At, r.Kind, r.Visible = 0, history.Handled, 0
	r.Outcome, r.Delay = o, after.Milliseconds()
	w.history.Write(r)
	patience := 2 * lease
	if rand.IntN(20) == 0 {
		patience = rand.N(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := tell(ctx)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, dueq.ErrOutcomeUnknown) { // it was over to begin with
		err = tell(context.Background())
	}
	r.At, r.Kind, r.Delay = 0, history.Settled, 0
	r.Outcome, r.Ended = history.Unknown, errors.Is(err, dueq.ErrStopping)
	if err == nil {
		r.Outcome = history.OK
	} else if r.Text = err.Error(); errors.Is(err, dueq.ErrLeaseLost) && !errors.Is(err, dueq.ErrOutcomeUnknown) {
		r.Outcome = history.Refused
	}
	w.history.Write(r)
}
