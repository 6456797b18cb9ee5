package main

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// A server that was killed answers its client once it has started again, whatever
// the client has tried meanwhile.
func TestServerAnswersAfterStart(t *testing.T) {
	t.Parallel()
	needServer(t)
	s, err := startServer(t.Context(), t.TempDir(), "always")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.kill()
	var pings sync.WaitGroup
	for range 20 {
		pings.Go(func() {
			if err := s.rdb.Ping(t.Context()).Err(); err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("ping of a dead server: %v", err)
			}
		})
	}
	pings.Wait()
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.config(t.Context(), "maxmemory", "0"); err != nil {
		t.Error(err)
	}
}
