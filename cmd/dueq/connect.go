package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
)

const (
	redisFlag     = "redis"
	redisEnv      = "DUEQ_REDIS"
	namespaceFlag = "namespace"
	namespaceEnv  = "DUEQ_NAMESPACE"

	// connectTimeout is how long a server has to answer for the first time.
	connectTimeout = 5 * time.Second
	// minPool is how many connections a queue needs.
	minPool = 5
)

// redisHelp tells of the URLs that [newClient] takes.
const redisHelp = `Redis URLs (in user and password, percent-encode characters such as / @ #):
  redis://user:password@host:6379/0         rediss:// for TLS
  unix://user:password@/path/redis.sock?db=0
  redis-cluster://user:password@host:6379?addr=host2:6379&addr=host3:6379
  redis-sentinel://host:26379/0?master_name=main&addr=host2:26379&password=…
Further options of the client are query parameters, such as dial_timeout=2s.`

var (
	errScheme = errors.New("a Redis URL begins with redis://, rediss://, unix://, redis-cluster:// or redis-sentinel://")
	// errAmbiguous stands for any error that may quote a part of the password.
	errAmbiguous = errors.New("not a URL; characters such as / @ # in user and password have to be percent-encoded")
)

// server is the Redis that a verb works on.
type server struct {
	client   redis.UniversalClient
	name     string               // for people: without user and password
	embedded *miniredis.Miniredis // nil: a server of its own
	url      string               // nothing to show: it has the password
}

// another makes one more client of the server, with connections of its own.
func (s *server) another() (redis.UniversalClient, error) {
	if s.embedded != nil {
		return redis.NewClient(&redis.Options{Addr: s.embedded.Addr()}), nil
	}
	client, _, err := newClient(s.url)
	return client, err
}

// addQueueFlags adds the flags that say which queue a verb works on.
func addQueueFlags(root *cobra.Command) {
	root.PersistentFlags().String(redisFlag, "", "`URL` of the Redis to use (default $"+redisEnv+")")
	root.PersistentFlags().String(namespaceFlag, "", "the `name` that heads the queue's keys (default $"+namespaceEnv+", else dueq)")
}

// namespace is the namespace that the flag names, or else the environment.
func namespace(cmd *cobra.Command) string {
	if f := cmd.Flag(namespaceFlag); f.Changed {
		return f.Value.String()
	}
	return cmp.Or(os.Getenv(namespaceEnv), "dueq")
}

// openQueue connects to the Redis that the flags name, and makes a queue on it,
// for verbs that need a Redis with something in it. The caller closes the server.
func openQueue(cmd *cobra.Command, opts dueq.Options) (*dueq.Queue, *server, error) {
	server, err := connectNamed(cmd.Context(), cmd)
	if err != nil {
		return nil, nil, err
	}
	opts.Namespace = namespace(cmd)
	q, err := dueq.New(server.client, opts)
	if err != nil {
		_ = server.close()
		return nil, nil, usageError{err}
	}
	return q, server, nil
}

// connect connects to the Redis that the flag names, or else the environment.
// Where both name none it starts an embedded miniredis.
func connect(ctx context.Context, cmd *cobra.Command) (*server, error) {
	if raw, _ := redisURL(cmd); raw == "" {
		return embed()
	}
	return connectNamed(ctx, cmd)
}

// redisURL is the URL that the flag names, or else the environment, and which.
func redisURL(cmd *cobra.Command) (raw, source string) {
	if f := cmd.Flag(redisFlag); f.Changed {
		return f.Value.String(), "--" + redisFlag
	}
	return os.Getenv(redisEnv), redisEnv
}

// connectNamed is [connect] for verbs that need a Redis with something in it.
func connectNamed(ctx context.Context, cmd *cobra.Command) (*server, error) {
	raw, source := redisURL(cmd)
	if raw == "" {
		return nil, usageError{fmt.Errorf("no Redis is named: use --%s or $%s", redisFlag, redisEnv)}
	}
	client, name, err := newClient(raw)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", source, err)}
	}
	timed, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = client.Ping(timed).Err()
	switch {
	case err == nil:
		return &server{client: client, name: name, url: raw}, nil
	case ctx.Err() != nil:
		err = errInterrupted
	default:
		err = fmt.Errorf("reach Redis at %s: %w", name, err)
	}
	return nil, errors.Join(err, client.Close())
}

// embed starts a miniredis in this process.
func embed() (*server, error) {
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start embedded miniredis: %w", err)
	}
	client := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	return &server{client: client, name: "embedded miniredis", embedded: mini}, nil
}

// close closes the client, and ends the miniredis if there is one.
func (s *server) close() error {
	err := s.client.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
	return err
}

// newClient makes a client for a URL, and a name for people. It does not dial.
// No error quotes the password.
func newClient(raw string) (client redis.UniversalClient, name string, err error) {
	u, err := url.Parse(raw)
	if strings.Contains(raw, "#") || u != nil && strings.Count(raw, "@") > 1 && u.User != nil {
		return nil, "", errAmbiguous // what follows may belong to the password
	}
	if err == nil {
		name = u.Scheme + "://" + u.Host + u.Path
		client, err = clientOf(u)
	}
	switch {
	case err == nil:
		return client, name, nil
	case strings.Contains(raw, "@") && (u == nil || u.User == nil):
		return nil, "", errAmbiguous
	case !strings.Contains(raw, "://"):
		return nil, "", errScheme
	}
	if parse, ok := errors.AsType[*url.Error](err); ok {
		err = parse.Err // without the URL
	}
	return nil, "", err
}

func clientOf(u *url.URL) (redis.UniversalClient, error) {
	base, kind, _ := strings.Cut(strings.ReplaceAll(u.Scheme, "+", "-"), "-")
	query := u.Query()
	switch {
	case kind == "" && query.Has("master_name"):
		kind = "sentinel"
	case kind == "" && query.Has("addr"):
		kind = "cluster"
	}
	plain := *u
	plain.Scheme = base
	switch {
	case base == "unix" && kind == "" && plain.Host == "":
		return singleClient(plain.String())
	case base != "redis" && base != "rediss":
	case kind == "":
		return singleClient(plain.String())
	case kind == "cluster":
		return clusterClient(&plain)
	case kind == "sentinel":
		return sentinelClient(&plain)
	}
	return nil, errScheme
}

func singleClient(u string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(u)
	if err == nil {
		err = checkPool(o.PoolSize)
	}
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

func clusterClient(u *url.URL) (redis.UniversalClient, error) {
	if db := strings.Trim(u.Path, "/"); db != "" && db != "0" {
		return nil, fmt.Errorf("database %q: a cluster has 0 only", db)
	}
	o, err := redis.ParseClusterURL(u.String())
	if err == nil {
		err = checkPool(o.PoolSize)
	}
	if err != nil {
		return nil, err
	}
	return redis.NewClusterClient(o), nil
}

func sentinelClient(u *url.URL) (redis.UniversalClient, error) {
	if u.Port() == "" {
		u.Host += ":26379"
	}
	o, err := redis.ParseFailoverURL(u.String())
	switch {
	case err != nil:
		return nil, err
	case o.MasterName == "":
		return nil, errors.New("a sentinel URL needs ?master_name=")
	case o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly:
		return nil, errors.New("route_by_latency, route_randomly and replica_only would read from replicas")
	}
	if err := checkPool(o.PoolSize); err != nil {
		return nil, err
	}
	return redis.NewFailoverClient(o), nil
}

// checkPool refuses a pool that a queue would wait in forever. 0 is the client's default.
func checkPool(size int) error {
	if size != 0 && size < minPool {
		return fmt.Errorf("pool_size is %d, less than %d", size, minPool)
	}
	return nil
}
