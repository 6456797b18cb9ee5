package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
)

// withQueue calls do with a queue on the Redis that the flags name, and tells
// apart who or what is to blame for its error.
func withQueue(cmd *cobra.Command, do func(ctx context.Context, q *dueq.Queue) error) error {
	q, server, err := openQueue(cmd, dueq.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then
	ctx := cmd.Context()
	err = do(ctx, q)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return asUsage(err)
}

// asUsage makes what is wrong with the arguments a [usageError].
func asUsage(err error) error {
	for _, is := range []error{
		dueq.ErrTopicInvalid, dueq.ErrIDInvalid, dueq.ErrEventInvalid, dueq.ErrBodyTooLarge, dueq.ErrQueryInvalid, dueq.ErrSubscription,
	} {
		if errors.Is(err, is) {
			return usageError{err}
		}
	}
	return err
}

// checkKnown returns a [usageError] if one of the topics was never used: it may be
// misspelt.
func checkKnown(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topics ...string) error {
	known, err := q.Topics(ctx)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if !slices.Contains(known, topic) {
			return usageError{fmt.Errorf("no topic %q in namespace %q", topic, namespace(cmd))}
		}
	}
	return nil
}
