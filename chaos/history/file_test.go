package history_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/chaos/history"
)

// What is written is read back, from all files of a folder, by time.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, proc := range []string{"a", "b"} {
		w, err := history.Create(filepath.Join(dir, proc+history.Ext), proc)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(history.Record{Kind: history.Publish, Op: w.Op(), At: int64(20 + i)}, history.Record{Kind: history.Fault, At: int64(10 + i)})
		w.Write(history.Record{Kind: history.Started, At: int64(30 + i)})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := history.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, r := range got {
		text = append(text, r.Proc+" "+string(r.Kind))
	}
	want := "a fault, b fault, a publish, b publish, a started, b started"
	if s := strings.Join(text, ", "); s != want || got[2].Op != 1 {
		t.Errorf("read %s, want %s", s, want)
	}
}

// A file is never written over, and a record without a time gets one.
func TestCreate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a"+history.Ext)
	w, err := history.Create(path, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := history.Create(path, "a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create = %v", err)
	}
	w.Write(history.Record{Kind: history.Started})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Write(history.Record{Kind: history.Started})
	if err := w.Close(); err == nil {
		t.Error("nobody was told that a record was not written")
	}
	if got, err := history.ReadDir(filepath.Dir(path)); err != nil || len(got) != 1 || got[0].At == 0 {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		n    int
		ok   bool
	}{
		"empty":                {"", 0, true},
		"whole":                {`{"at":1,"proc":"a","kind":"started"}` + "\n", 1, true},
		"torn":                 {`{"at":1,"proc":"a","kind":"started"}` + "\n" + `{"at":2,"pr`, 1, true},
		"torn only":            {`{"at":1`, 0, true},
		"broken in the middle": {"{\"at\":\n{\"at\":1}\n", 0, false},
	} {
		got, err := history.Read(strings.NewReader(c.text))
		if len(got) != c.n || (err == nil) != c.ok {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
	}
}
