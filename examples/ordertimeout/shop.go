// Package ordertimeout closes orders that nobody pays in time. The guide is
// docs/order-timeout.md.
package ordertimeout

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
)

// ErrClosed says that an order was closed before it was paid.
var ErrClosed = errors.New("order is closed")

// Schema is the table that a [Shop] needs.
const Schema = `CREATE TABLE orders (
	id    TEXT PRIMARY KEY,
	state TEXT NOT NULL -- open, paid or closed
)`

// Shop takes orders, and closes those that are not paid in time.
type Shop struct {
	DB       *sql.DB
	Queue    *dueq.Queue
	Patience time.Duration // how long an order may stay unpaid
}

// Place takes an order. Calling it again for the same order changes nothing.
func (s *Shop) Place(ctx context.Context, order string) error {
	_, err := s.Queue.PublishEvent(ctx, "order.close", []byte(order), time.Now().Add(s.Patience),
		dueq.WithID(order), dueq.WithKeyPolicy(dueq.KeyKeep))
	if err != nil {
		return fmt.Errorf("place order %s: %w", order, err)
	}
	const insert = `INSERT INTO orders (id, state) VALUES (?, 'open') ON CONFLICT (id) DO NOTHING`
	if _, err := s.DB.ExecContext(ctx, insert, order); err != nil {
		return fmt.Errorf("place order %s: %w", order, err)
	}
	return nil
}

// Pay marks an order as paid, unless it is closed.
func (s *Shop) Pay(ctx context.Context, order string) error {
	const pay = `UPDATE orders SET state = 'paid' WHERE id = ? AND state <> 'closed'`
	paid, err := s.update(ctx, pay, order)
	if err != nil {
		return fmt.Errorf("pay order %s: %w", order, err)
	}
	if !paid {
		return fmt.Errorf("pay order %s: %w", order, ErrClosed)
	}
	_ = s.Queue.Cancel(ctx, "order.close", order) // if it fails, HandleEvent finds the order paid
	return nil
}

// HandleEvent closes an order whose time is up, unless it is paid.
func (s *Shop) HandleEvent(ctx context.Context, e *dueq.Event) error {
	order := string(e.Body)
	const closeOpen = `UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'open'`
	closed, err := s.update(ctx, closeOpen, order)
	if err != nil {
		return fmt.Errorf("close order %s: %w", order, err) // comes again
	}
	if closed {
		fmt.Println("closed", order)
	}
	return nil // closed now, closed before, paid, or never placed: nothing is left to do
}

// Extend gives the customer more time, counted from now.
func (s *Shop) Extend(ctx context.Context, order string, more time.Duration) error {
	return s.Queue.Reschedule(ctx, "order.close", order, time.Now().Add(more))
}

// update reports whether the statement changed the order.
func (s *Shop) update(ctx context.Context, statement, order string) (bool, error) {
	result, err := s.DB.ExecContext(ctx, statement, order)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
