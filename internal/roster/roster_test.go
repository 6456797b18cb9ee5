package roster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/internal/roster"
)

func list(t *testing.T, env *redistest.Env) (ids []string) {
	t.Helper()
	sessions, err := roster.List(t.Context(), env.Client, env.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

func announce(t *testing.T, env *redistest.Env, e *roster.Entry, s roster.Session) {
	t.Helper()
	if err := e.Announce(t.Context(), env.Client, s); err != nil {
		t.Fatal(err)
	}
}

// Who announces itself is listed as it says until it withdraws, or was not seen
// for as long as it says.
func TestRoster(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		if got := list(t, env); len(got) != 0 {
			t.Errorf("listed %q", got)
		}
		a, b := roster.Entry{Namespace: env.Namespace}, roster.Entry{Namespace: env.Namespace}
		announce(t, env, &b, roster.Session{ID: "b", Keep: 5 * time.Millisecond})
		self := roster.Session{ID: "a", Host: "h", PID: 7, Started: time.Now().Round(0).UTC(), Keep: time.Hour, Topics: []string{"x\x1b"}, More: 3}
		announce(t, env, &a, self)
		self.Topics = []string{"y", "z"}
		announce(t, env, &a, self)
		for len(list(t, env)) > 1 { // b's time passes
			if t.Context().Err() != nil {
				t.Fatal(t.Context().Err())
			}
		}
		got, err := roster.List(t.Context(), env.Client, env.Namespace)
		if err != nil || len(got) != 1 {
			t.Fatalf("listed %+v, %v", got, err)
		}
		if since := time.Since(got[0].LastSeen).Abs(); since > time.Minute {
			t.Errorf("last seen %v ago", since)
		}
		self.LastSeen = got[0].LastSeen
		if fmt.Sprint(got[0]) != fmt.Sprint(self) {
			t.Errorf("listed %+v, want %+v", got[0], self)
		}
		announce(t, env, &a, self) // drops what was left of b
		if n := env.Client.ZCard(t.Context(), key.Seen(env.Namespace)).Val(); n != 1 {
			t.Errorf("%d descriptions are kept", n)
		}
		if err := a.Withdraw(t.Context(), env.Client); err != nil {
			t.Fatal(err)
		}
		if n := env.Client.Exists(t.Context(), key.Seen(env.Namespace)).Val(); n != 0 {
			t.Error("something is left of those that have withdrawn")
		}
	})
}

// However many sessions are left behind, one call drops few of them, and one
// lists no more than it may.
func TestRosterOfMany(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for i := range 300 {
			announce(t, env, &roster.Entry{Namespace: env.Namespace}, roster.Session{ID: fmt.Sprint("past", i), Keep: -time.Hour})
		}
		for i := range roster.MaxSessions + 10 {
			keep := time.Hour + time.Duration(i)*time.Second
			announce(t, env, &roster.Entry{Namespace: env.Namespace}, roster.Session{ID: fmt.Sprintf("%04d", i), Keep: keep})
		}
		if n := env.Client.ZCard(t.Context(), key.Seen(env.Namespace)).Val(); n != roster.MaxSessions+10 {
			t.Errorf("%d descriptions are kept", n)
		}
		if got := list(t, env); len(got) != roster.MaxSessions || got[0] != "0010" {
			t.Errorf("%d are listed, the first of them %q", len(got), got[0])
		}
	})
}

func TestRosterFails(t *testing.T) {
	env := redistest.Mini(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := roster.Entry{Namespace: env.Namespace}
	_, listErr := roster.List(ctx, env.Client, env.Namespace)
	for _, err := range []error{e.Announce(ctx, env.Client, roster.Session{}), e.Withdraw(ctx, env.Client), listErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
}

// Whatever some other hand has put there, the rest is read.
func FuzzParse(f *testing.F) {
	f.Add(`{"id":"a","topics":["x"]}`, "1732184350000")
	f.Add(`{"id":"a","keep":-9223372036854775808,"started":"2024-11-21T10:00:00Z"}`, "-inf")
	f.Add(`{"id":1}`, "nan")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, description, until string) {
		got := roster.Parse([]any{description, until, nil, 7, `{"id":"known to be sound"}`, "1", `{"id":"known to be sound","pid":7}`, "0", "odd"})
		if n := len(got); n < 1 || n > 2 || got[n-1].ID != "known to be sound" || got[n-1].PID != 0 {
			t.Errorf("read %+v", got)
		}
	})
}
