package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/chaos/history"
)

// backoffStep is the pause after a first attempt, unless the handler asks for
// another.
const backoffStep = 100 * time.Millisecond

var errBroken = errors.New("broken on purpose")

// handle does what the dice say, and records it.
func (w *worker) handle(ctx context.Context, e *dueq.Event) (err error) {
	r := w.delivered(history.Handle, e)
	w.history.Write(r)
	dice := rand.IntN(100)
	if rand.IntN(2) == 0 && dice >= 70 {
		defer context.AfterFunc(ctx, func() {
			if givenUp(ctx) {
				w.history.Write(history.Record{Kind: history.ContextEnded, Op: r.Op, Topic: r.Topic, ID: r.ID, Text: context.Cause(ctx).Error()})
			}
		})()
	}
	r.Outcome = history.Failed
	r.Delay = int64(e.Attempt) * backoffStep.Milliseconds()
	defer func() { // a panic and runtime.Goexit, too
		r.At, r.Kind = 0, history.Handled
		if dice >= 70 { // most handlers do not look at their context, which saves the queue work
			r.Ended = givenUp(ctx)
		}
		w.history.Write(r)
	}()
	after, err := act(ctx, dice)
	switch {
	case err == nil:
		r.Outcome, r.Delay = history.OK, 0
	case after > 0:
		r.Delay = after.Milliseconds()
		err = dueq.RetryAfter(after, err)
	case after < 0:
		r.Outcome, r.Delay = history.Skip, 0
		err = dueq.SkipRetry(err)
	}
	return err
}

// act is a handler that succeeds, fails, panics, hangs or is slow. after is
// when it wants to be called again, if it says so; less than 0 is never.
func act(ctx context.Context, dice int) (after time.Duration, err error) {
	switch {
	case dice < 70:
		return 0, nil
	case dice < 78:
		pause(context.Background(), rand.N(50*time.Millisecond))
		return 0, nil
	case dice < 84:
		return time.Duration(50+rand.IntN(500)) * time.Millisecond, errBroken
	case dice < 88:
		return 0, errBroken
	case dice < 90:
		panic(errBroken)
	case dice < 91:
		runtime.Goexit()
	case dice < 92:
		return -1, errBroken
	case dice < 93: // until HandlerTimeout
		<-ctx.Done()
		return 0, context.Cause(ctx)
	case dice < 96: // as one should
		if !pause(ctx, lease/4+rand.N(lease)) {
			return 0, context.Cause(ctx)
		}
		return 0, nil
	}
	pause(context.Background(), lease/4+rand.N(lease)) // as one should not
	return 0, nil
}

// persist takes most of what has failed for good.
func (w *worker) persist(ctx context.Context, e *dueq.Event, _ error) error {
	r := w.delivered(history.Persist, e)
	w.history.Write(r)
	var err error
	switch dice := rand.IntN(10); {
	case dice < 2:
		err = errBroken
	case dice < 4:
		pause(context.Background(), rand.N(lease/4))
	}
	r.At, r.Kind, r.Outcome = 0, history.Persisted, history.OK
	if err != nil {
		r.Outcome = history.Failed
	}
	r.Ended = givenUp(ctx)
	w.history.Write(r)
	return err
}

// delivered is the first record of a call of ours.
func (w *worker) delivered(kind history.Kind, e *dueq.Event) history.Record {
	r := history.Record{
		At: time.Now().UnixNano(), Kind: kind, Op: w.history.Op(), Topic: e.Topic, ID: e.ID,
		Due: e.EffectTime.UnixMilli(), Attempt: e.Attempt, Max: e.MaxAttempts,
	}
	r.Pub, _, _ = strings.Cut(string(e.Body), " ")
	if string(e.Body) != string(body(r.Pub)) {
		r.Pub = ""
		r.Text = string(e.Body)
	}
	return r
}

// givenUp reports whether the queue has ended the ctx of a function of ours
// before it returned, and so decided that what it returns does not count.
func givenUp(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), dueq.ErrHandlerTimeout)
}

// pause waits, and reports whether it did so to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
