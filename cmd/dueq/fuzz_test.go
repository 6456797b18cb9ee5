package main_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	command "github.com/dueq-io/dueq/cmd/dueq"
)

// No text given for a URL breaks the command or comes with a client that nobody
// closes.
func FuzzURL(f *testing.F) {
	for _, raw := range []string{
		"", "localhost:6379", "redis://h", "rediss://:pw@h:1/2", "unix://ann:pw@/run/r.sock?db=1", "redis-cluster://h?addr=i:2&addr=",
		"redis+sentinel://s:x@h?master_name=m&username=ann", "redis://h:port", "redis://ann:sec/ret@h:1", "redis://[::1", "redis://h?pool_size=-1",
		"redis-sentinel://?master_name=m", "redis://h?dial_timeout=-1&addr", "://", "redis-cluster://", "unix://", "redis://%zz@h", "redis://h/\x00",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		client, name, err := command.NewClient(raw)
		if (client == nil) != (err != nil) || (name == "") != (err != nil) {
			t.Fatalf("%q: client %v, name %q, %v", raw, client, name, err)
		}
		if err != nil {
			return
		}
		if err := client.Close(); err != nil {
			t.Errorf("%q: close: %v", raw, err)
		}
	})
}

// No password shows up in a server's name or in an error, be it encoded or not.
func FuzzPassword(f *testing.F) {
	f.Add("redis", "secret", "h:1/2", true)
	f.Add("redis", "sec/ret@", "h:1/2", false)
	f.Add("redis-cluster", "%secret", "h?addr=i", false)
	f.Add("rediss-sentinel", "se#cret", "h?master_name=m&x=1", false)
	f.Add("unix", "se?cret", "/run/r.sock", false)
	f.Add("redis", "pw\x00", "h:port", true)
	f.Add("http", "a:b@c", "h", false)
	f.Add("redis", "@/", "0", false)
	f.Add("unix", "@/run/", "/r.sock", false)
	f.Fuzz(func(t *testing.T, scheme, password, rest string, encode bool) {
		const mark = "Pa55w0rd"
		if strings.Contains(scheme+rest, mark) || strings.ContainsAny(scheme, "@/?#:") {
			return // then the password is not the only place that has it
		}
		password = mark + password + mark
		if encode {
			password = url.QueryEscape(password)
		}
		client, name, err := command.NewClient(scheme + "://ann:" + password + "@" + rest)
		if err != nil {
			if strings.Contains(err.Error(), mark) {
				t.Errorf("%s, %q, %q: error %q", scheme, password, rest, err)
			}
			return
		}
		if strings.Contains(name, mark) {
			t.Errorf("%s, %q, %q: name %q", scheme, password, rest, name)
		}
		_ = client.Close()
	})
}

// Whatever the arguments, the command ends with one of its exit codes, and if it
// was called wrongly, says so on stderr alone. It is interrupted before it
// begins.
func FuzzArgs(f *testing.F) {
	for _, args := range []string{
		"", "--events\n7\n--spread\n1s", "--events=0", "--spread=-1ns", "--spread\n99999h", "--patience\n1", "-o\njson\n--output=maybe", "-h", "--\nx",
		"--redis\nhttp://h", "--redis=redis://h?pool_size=x", "--events\n99999999999999999999", "\x00", "--\xff", "--events", "-e\n1",
	} {
		f.Add(args)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	f.Fuzz(func(t *testing.T, args string) {
		code, stdout, stderr := run(ended, nil, append([]string{"demo"}, strings.Split(args, "\n")...)...)
		switch code {
		case 0, 1, 130:
		case 2:
			if stdout != "" || !strings.HasPrefix(stderr, "dueq: ") || !strings.Contains(stderr, "--help' for usage") {
				t.Errorf("%q: stdout %q, stderr %q", args, stdout, stderr)
			}
		default:
			t.Errorf("%q: exit code %d", args, code)
		}
	})
}

// The same of the verbs that look at topics and change them.
func FuzzVerbs(f *testing.F) {
	verbs := []string{"topics", "stats", "ls", "get", "cancel", "reschedule", "requeue", "purge", "pause", "resume", "sessions"}
	for i, args := range []string{
		"-o\njson", "a\n--watch\n--interval\n1ms", "a\n--state\ndead\n--since\n-1h\n--limit=501", "a\nb\n--raw", "a\nb\nc\n-y",
		"a\nb\n--in\n1h\n--at\n2030-01-01T00:00:00Z", "a\n--all\n--yes\n--error\n\x00", "a\n--state\nready,,\"", "", "a\xff\n--redis=redis://h", "x",
	} {
		f.Add(byte(i), args)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	f.Fuzz(func(t *testing.T, verb byte, args string) {
		all := append([]string{verbs[int(verb)%len(verbs)]}, strings.Split(args, "\n")...)
		code, stdout, stderr := run(ended, nil, all...)
		switch code {
		case 0, 1, 130:
		case 2:
			if stdout != "" || !strings.HasPrefix(stderr, "dueq: ") || !strings.Contains(stderr, "--help' for usage") {
				t.Errorf("%q: stdout %q, stderr %q", all, stdout, stderr)
			}
		default:
			t.Errorf("%q: exit code %d", all, code)
		}
	})
}
