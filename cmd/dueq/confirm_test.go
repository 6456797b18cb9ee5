package main_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// tty is a terminal at which somebody has typed something.
type tty struct{ io.Reader }

func (tty) Stat() (os.FileInfo, error) { return os.Stat("/dev/zero") } // a character device

// On a terminal the verbs that forget events ask, and say of how many they speak.
func TestConfirm(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	v := newVerbs(t, env)
	for i := range 1200 {
		v.publish("t", fmt.Sprint(i), "x", time.Now().Add(time.Hour))
	}
	for i := range 2 {
		v.publish("dying", fmt.Sprint(i), "x", time.Now())
	}
	v.kill("dying", "no route", 2)
	type run struct {
		args, answer, want string
		code               int
	}
	for _, r := range []run{
		{"purge t", "", "Forget the events of topic t: 1,200 scheduled, 0 ready, 0 dead? [y/N] ", 1},
		{"purge t", "n\n", "not confirmed; nothing was changed", 1},
		{"purge t --state ready,scheduled", "yesterday\n", "topic t: 1,200 scheduled, 0 ready? ", 1},
		{"purge t -o json", "y\n", "add --yes", 2},
		{"cancel t 1 2", "no\n", "Forget 2 events of topic t? ", 1},
		{"requeue dying --all", "no\n", "Requeue 2 dead events of topic dying? ", 1},
		{"requeue dying --id-prefix 1", "no\n", "Requeue 1 dead event of topic dying? ", 1},
		{"cancel t 1 2", "y\n", "2 events cancelled", 0},
		{"requeue dying --all", "YES\n", "2 events requeued", 0},
		{"purge t --state scheduled", " y \n", "1,198 events forgotten", 0},
	} {
		before, err := v.q.Stats(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		code := command.Run(t.Context(), append(strings.Fields(r.args), v.flags...), tty{strings.NewReader(r.answer)}, &out, &out)
		if code != r.code || !strings.Contains(out.String(), r.want) {
			t.Errorf("dueq %s, answer %q: exit code %d, want %d; %q lacks %q", r.args, r.answer, code, r.code, out.String(), r.want)
		}
		after, err := v.q.Stats(t.Context(), "t")
		if err != nil || r.code != 0 && (after.Scheduled != before.Scheduled || after.Cancelled != before.Cancelled) {
			t.Errorf("dueq %s, answer %q: %+v became %+v, %v", r.args, r.answer, before, after, err)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	if code := command.Run(t.Context(), append([]string{"purge", "dying"}, v.flags...), null, io.Discard, io.Discard); code != 2 {
		t.Errorf("with nobody there: exit code %d", code)
	}
	// An interrupt is an answer, too.
	ctx, cancel := context.WithCancel(t.Context())
	silent, hangUp := io.Pipe()
	t.Cleanup(func() { _ = hangUp.Close() })
	asked := hook(func(text string) {
		if strings.Contains(text, "[y/N]") {
			cancel()
		}
	})
	if code := command.Run(ctx, append([]string{"purge", "dying"}, v.flags...), tty{silent}, io.Discard, asked); code != 130 {
		t.Errorf("interrupted: exit code %d", code)
	}
}
