package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	command "github.com/dueq-io/dueq/cmd/dueq"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	type want struct {
		name, network, addr, user, password string
		db                                  int
		tls                                 bool
	}
	for url, w := range map[string]want{
		"redis://h":                          {"redis://h", "tcp", "h:6379", "", "", 0, false},
		"redis://:pw@h:1/2":                  {"redis://h:1/2", "tcp", "h:1", "", "pw", 2, false},
		"redis://ann:p%2Fw%40@[::1]:1?db=3":  {"redis://[::1]:1", "tcp", "[::1]:1", "ann", "p/w@", 3, false},
		"rediss://ann:pw@h:1":                {"rediss://h:1", "tcp", "h:1", "ann", "pw", 0, true},
		"unix:///run/a@b.sock":               {"unix:///run/a@b.sock", "unix", "/run/a@b.sock", "", "", 0, false},
		"unix://ann:pw@/run/r.sock?db=1":     {"unix:///run/r.sock", "unix", "/run/r.sock", "ann", "pw", 1, false},
		"redis://h?pool_size=5&protocol=2":   {"redis://h", "tcp", "h:6379", "", "", 0, false},
		"redis-sentinel://h/2?master_name=m": {"redis-sentinel://h/2", "tcp", "FailoverClient", "", "", 2, false},
		"redis+sentinel://s:x@h?master_name=m&username=ann&password=pw": {
			"redis+sentinel://h", "tcp", "FailoverClient", "ann", "pw", 0, false,
		},
		"rediss://h?master_name=m": {"rediss://h", "tcp", "FailoverClient", "", "", 0, true},
	} {
		client, name, err := command.NewClient(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		single, ok := client.(*redis.Client)
		if !ok {
			t.Errorf("%s: a %T", url, client)
			continue
		}
		o := single.Options()
		got := want{name, o.Network, o.Addr, o.Username, o.Password, o.DB, o.TLSConfig != nil}
		if got != w {
			t.Errorf("%s: got %+v, want %+v", url, got, w)
		}
		if err := client.Close(); err != nil {
			t.Errorf("%s: close: %v", url, err)
		}
	}
}

func TestClusterURLs(t *testing.T) {
	t.Parallel()
	for url, addrs := range map[string][]string{
		"redis-cluster://ann:pw@h":                   {"h:6379"},
		"redis+cluster://ann:pw@h:1/0?addr=i:2":      {"h:1", "i:2"},
		"redis://ann:pw@h:1?addr=i:2&addr=j:3":       {"h:1", "i:2", "j:3"},
		"rediss-cluster://ann:pw@h:1?dial_timeout=3": {"h:1"},
	} {
		client, name, err := command.NewClient(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		cluster, ok := client.(*redis.ClusterClient)
		if !ok {
			t.Errorf("%s: a %T", url, client)
			continue
		}
		o := cluster.Options()
		if !slices.Equal(o.Addrs, addrs) || o.Username != "ann" || o.Password != "pw" ||
			(o.TLSConfig != nil) != strings.HasPrefix(url, "rediss") || strings.Contains(name, "ann") {
			t.Errorf("%s: got %q, addresses %q, want %q", url, name, o.Addrs, addrs)
		}
		if err := client.Close(); err != nil {
			t.Errorf("%s: close: %v", url, err)
		}
	}
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	const schemes = "begins with redis://"
	for url, want := range map[string]string{
		"localhost:6379":                           schemes,
		"127.0.0.1:6379":                           schemes,
		"localhost":                                schemes,
		"http://h":                                 schemes,
		"unix-cluster:///s":                        schemes,
		"redis-ring://h":                           schemes,
		"redis://ann:secret@h:port":                "not a URL",
		"redis://h:port":                           "invalid port",
		"redis://ann:sec/ret@h:1":                  "percent-encoded",
		"redis://ann:1/secret@h:1":                 "percent-encoded",
		"redis://ann:%secret@h":                    "percent-encoded",
		"redis://ann:secret@h/x":                   "database",
		"redis://ann:secret@h?nonsense=1":          "nonsense",
		"redis://h?pool_size=4":                    "less than 5",
		"unix://ann:secret@":                       "socket path",
		"redis-cluster://ann:secret@h/1":           "0 only",
		"redis-cluster://h?pool_size=-1":           "less than 5",
		"redis-cluster://h?addr=i":                 "addr",
		"redis-sentinel://ann:secret@h":            "master_name",
		"redis-sentinel://h?master_name=m&db=x":    "database",
		"redis://h?master_name=m&replica_only=1":   "replica",
		"redis://h?master_name=m&route_randomly=1": "replica",
		"redis://h?master_name=m&pool_size=2":      "less than 5",
	} {
		client, _, err := command.NewClient(url)
		if err == nil {
			t.Errorf("%s: no error, but a %T", url, client)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %q, want %q in it and no password", url, err, want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t.Context(), nil, "demo", "--redis", "unix://ann:secret@/no/such/socket?max_retries=-1")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "reach Redis at unix:///no/such/socket") || strings.Contains(stderr, "secret") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, stdout, stderr)
	}
}
