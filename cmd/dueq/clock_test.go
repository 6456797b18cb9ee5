package main_test

import (
	"testing"
	"time"

	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestClockOffset(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		offset, err := command.ClockOffset(t.Context(), env.Client, "k")
		if err != nil || offset != 0 {
			t.Errorf("offset on one machine %v, %v, want 0", offset, err)
		}
		if env.Mini == nil {
			return
		}
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			env.Mini.SetTime(time.Now().Add(ahead))
			offset, err := command.ClockOffset(t.Context(), env.Client, "k")
			if err != nil || (offset-ahead).Abs() > time.Minute {
				t.Errorf("offset %v, %v, want about %v", offset, err, ahead)
			}
		}
	})
}
