package key_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dueq-io/dueq/internal/key"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const namespace, topic, id = 1, 2, 4
	for _, c := range []struct {
		name string
		ok   int // which of the three it may be
	}{
		{"", 0},
		{"a", namespace | topic | id},
		{"order.close", namespace | topic | id},
		{"ä ö\u2028*?[]^$\\\"'", namespace | topic | id},
		{"a:b", topic | id},
		{":", topic | id},
		{"a{", 0},
		{"}a", 0},
		{"{}", 0},
		{"a\n", 0},
		{"\x00", 0},
		{"\x1b[31m", 0},
		{"a\x7f", 0},
		{"a\u0085b", 0},
		{"a\xffb", 0},
		{"\xc3", 0},
		{"/", namespace | topic | id},
		{"a/", namespace | topic | id},
		{"a/b", namespace | topic | id},
		{"a/1b", namespace | topic | id},
		{"a/-1", namespace | topic | id},
		{"a/+1", namespace | topic | id},
		{"a/1/b", namespace | topic | id},
		{"a/١", namespace | topic | id}, // an Arabic digit one
		{"a/1", namespace | id},
		{"/0", namespace | id},
		{"a/b/007", namespace | id},
		{"7", namespace | topic | id},
		{strings.Repeat("x", 64), namespace | topic | id},
		{strings.Repeat("x", 65), topic | id},
		{strings.Repeat("x", 255), topic | id},
		{strings.Repeat("ä", 128), id},
		{strings.Repeat("x", 1024), id},
		{strings.Repeat("x", 1025), 0},
	} {
		for what, err := range map[int]error{
			namespace: key.CheckNamespace(c.name), topic: key.CheckTopic(c.name), id: key.CheckID(c.name),
		} {
			if (err == nil) != (c.ok&what != 0) {
				t.Errorf("%q as %d: %v", c.name, what, err)
			}
			if err != nil && !errors.Is(err, key.ErrName) {
				t.Errorf("%q as %d: %v does not wrap ErrName", c.name, what, err)
			}
		}
	}
}

// tag is the part of a key that decides on its slot, as Redis Cluster finds it.
func tag(k string) string {
	if _, rest, ok := strings.Cut(k, "{"); ok {
		if t, _, ok := strings.Cut(rest, "}"); ok && t != "" {
			return t
		}
	}
	return k
}

// No names that pass reach another lane's keys.
func FuzzCheck(f *testing.F) {
	f.Add("ns", "topic", "ns2", "topic/1")
	f.Add("a", "b:c", "a:b", "c")
	f.Add("a", "b}", "a", "b")
	f.Add("a", "b/2", "a", "b")
	f.Add("{", "\n", "\x85", "\xff")
	f.Fuzz(func(t *testing.T, ns1, topic1, ns2, topic2 string) {
		for _, err := range []error{key.CheckNamespace(ns1), key.CheckNamespace(ns2), key.CheckTopic(topic1), key.CheckTopic(topic2)} {
			if err == nil {
				continue
			}
			if !errors.Is(err, key.ErrName) || !utf8.ValidString(err.Error()) || len(err.Error()) > 1000 {
				t.Errorf("error %q", err)
			}
			return
		}
		seen := map[string]string{}
		for _, name := range [][2]string{{ns1, topic1}, {ns2, topic2}} {
			for p := range 3 {
				l := key.NewLane(name[0], name[1], max(p-1, 0), 1+p, 4)
				where := name[0] + "\x00" + name[1] + "\x00" + l.Tag
				for _, k := range keysOf(l) {
					if "{"+tag(k)+"}" != l.Tag {
						t.Errorf("key %q lies in slot of %q, want %q", k, tag(k), l.Tag)
					}
					if other, ok := seen[k]; ok && other != where {
						t.Errorf("key %q belongs to %q and to %q", k, other, where)
					}
					seen[k] = where
				}
				for _, own := range []string{key.Topics(name[0]), key.Seen(name[0])} {
					if _, ok := seen[own]; ok {
						t.Errorf("%q is also a lane's key", own)
					}
				}
			}
		}
	})
}
