package readyqueue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/readyqueue"
)

// list makes a text what a script returns: one string per line, and nil for a
// line that says so.
func list(text string) []any {
	if text == "" {
		return []any{}
	}
	lines := strings.Split(text, "\n")
	values := make([]any, len(lines))
	for i, line := range lines {
		if line != "nil" {
			values[i] = line
		}
	}
	return values
}

// Whatever some other hand has put into the lane, a claim's reply is read, and
// no id in it goes unnoticed.
func FuzzClaimReply(f *testing.F) {
	f.Add(int64(1732184350000000), int64(3), "1732184357123\n\n1.7321843571230001e+12", "a\nb\nc", "record\nnil", "2|3|boom\nnil\n7")
	f.Add(int64(-1), int64(1)<<62, "inf\n-inf\n0", "a", "nil", "")
	f.Add(int64(0), int64(0), "1e400\nnan\n-1e400", "a\nb", "", "x\ny\nz")
	f.Add(int64(0), int64(0), "1\n2\n3\n4\n5", "", "a", "||")
	f.Fuzz(func(t *testing.T, now, left int64, heads, ids, records, entries string) {
		due := []int{4, 0, 7}
		got := readyqueue.Claim{Due: due}.ParseReply([]any{"ok", now, left, list(heads), list(ids), list(records), list(entries), left & 1})
		if got.Now != now || got.Left != int(left) {
			t.Errorf("now %d, left %d came back as %d, %d", now, left, got.Now, got.Left)
		}
		if len(got.Heads) > len(due) {
			t.Errorf("%d heads of %d buckets", len(got.Heads), len(due))
		}
		for i, h := range got.Heads {
			if h.Bucket != due[i] || !h.Empty && (h.Due < 1 || h.Due > 1<<53) || h.Empty && h.Due != 0 {
				t.Errorf("head %d: %+v", i, h)
			}
		}
		wantIDs, wantRecords := list(ids), list(records)
		if len(got.Leases) != len(wantIDs) {
			t.Fatalf("%d leases of %d ids", len(got.Leases), len(wantIDs))
		}
		for i, l := range got.Leases {
			id, _ := wantIDs[i].(string)
			record, ok := "", false
			if i < len(wantRecords) {
				record, ok = wantRecords[i].(string)
			}
			if l.ID != id || l.Record != record || l.Missing == ok {
				t.Errorf("lease %d: %+v, want id %q, record %q, %t", i, l, id, record, ok)
			}
		}
	})
}

// A settlement is lost if the reply says so, and is settled once more at most once.
func FuzzSettleReply(f *testing.F) {
	f.Add("", "")
	f.Add("a", "b")
	f.Add("a\nb\nc\nd", "a\nb\nc")
	f.Add("nil\n\nx", "nil\nx\nx")
	f.Fuzz(func(t *testing.T, lost, marked string) {
		s := readyqueue.Settlements{Lane: key.NewLane("ns", "a", 0, 1, 4), Session: "me"}
		for _, id := range []string{"a", "b", "c"} {
			s.Items = append(s.Items, &readyqueue.Settlement{ID: id})
		}
		for try := range 2 {
			again := s.TakeReply([]any{list(lost), list(marked)})
			for _, it := range s.Items {
				if want := slices.Contains(list(lost), any(it.ID)); errors.Is(it.Err, readyqueue.ErrLost) != want || !want && it.Err != nil {
					t.Errorf("%s: %v", it.ID, it.Err)
				}
				if want := try == 0 && slices.Contains(list(marked), any(it.ID)); slices.Contains(again, it) != want {
					t.Errorf("%s is to be settled once more: %t", it.ID, !want)
				}
			}
		}
	})
}

// What is read of an entry is what was meant by it, and stays that.
func FuzzParseAttempts(f *testing.F) {
	for _, entry := range []string{
		"", "|", "||", "3||boom", "1|5|a|b\n|", "x|1|c", "7|zz|c", "-1|-1|", "99999999999999999999|fffffffffffffffff|x", "1.5||", "+3|0x1|", "\xff|\xff|\xff",
	} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		a := readyqueue.ParseAttempts(entry)
		again := readyqueue.ParseAttempts(a.String())
		if again.Count != a.Count || again.Done != a.Done || len(a.Cause) <= 4096 && again.Cause != a.Cause {
			t.Errorf("%q is %+v, and that is %+v", entry, a, again)
		}
	})
}
