package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	tokenEnv     = "DUEQ_TOKEN"
	readTokenEnv = "DUEQ_READ_TOKEN"
)

// serveFlags are the flags of the verb serve.
type serveFlags struct {
	addr            string
	insecureNoAuth  bool
	tokenFile       string
	readTokenFile   string
	tlsCert, tlsKey string
	maxBody         int
	push            []string
	pushFile        string
	drainDelay      time.Duration
	shutdownTimeout time.Duration
	logLevel        string

	tokens, readTokens []string
	pushes             []push
}

// newServe is the verb serve.
func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a JSON API, a dashboard and metrics over HTTP",
		Long: `Serves a queue over HTTP, for every language:

  /                   the dashboard
  /v1                 the JSON API: publish, consume, find, change; /v1/openapi.json describes it
  /metrics            for Prometheus
  /healthz, /readyz   whether the process serves; whether it should be sent requests

Whoever has a token of $DUEQ_TOKEN (several are separated by commas) may do everything, and with one of
$DUEQ_READ_TOKEN look at everything. Without tokens everybody who reaches the address may do everything, so
that must then be one of this machine alone.

With --push the events of a topic are posted to a URL: 2xx acks, other 4xx than 408, 425 and 429 are final, and
everything else is retried, when Retry-After says if the answer has it. --push-file has more settings: it is a
JSON array of objects with

  topic, url       must be given
  timeout          of one request, as "10s" (default 30s)
  concurrency      requests at once (default 16)
  max_attempts     after how many an event has failed for good (default 10)
  secret           signs requests as Standard Webhooks (default $DUEQ_PUSH_SECRET, else they are not signed)

Without --redis it starts an embedded miniredis, which keeps nothing: all is in memory, and gone at the end.

SIGTERM and Ctrl-C end it: /readyz fails, waiting claims return, running pushes finish, claimed events can
be settled until --shutdown-timeout, and what is left goes to other processes. Another signal,
a second later or more, ends it at once.

Exit codes: 0 ended by a signal, 1 failed, 2 called wrongly.

` + redisHelp,
		Example: `  dueq serve
  DUEQ_TOKEN=$(openssl rand -hex 24) dueq serve --redis redis://localhost:6379 --addr :7700
  dueq serve --push order.close=https://shop.example/hooks/close`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:7700", "listen on this `address`")
	flags.BoolVar(&f.insecureNoAuth, "insecure-no-auth", false, "serve other machines without tokens: they may do everything")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with tokens for full access, one a line (besides $"+tokenEnv+")")
	flags.StringVar(&f.readTokenFile, "read-token-file", "", "`file` with tokens for reading, one a line (besides $"+readTokenEnv+")")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`file` with a certificate chain in PEM, to serve HTTPS")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`file` with its key in PEM")
	flags.IntVar(&f.maxBody, "max-body", 1<<20, "largest event body in `bytes`, up to 256 MiB")
	flags.StringArrayVar(&f.push, "push", nil, "post the events of a topic to a URL, as `TOPIC=URL`; may be repeated")
	flags.StringVar(&f.pushFile, "push-file", "", "JSON `file` with topics to post, and how")
	flags.DurationVar(&f.drainDelay, "drain-delay", 0, "how long to go on after /readyz began to fail, for load balancers to notice, up to 5m")
	flags.DurationVar(&f.shutdownTimeout, "shutdown-timeout", 30*time.Second, "how long what runs may take to finish, up to 1h")
	flags.StringVar(&f.logLevel, "log-level", "info", "`level` of the log on stderr: debug, info, warn or error; info has every request")
	flags.SortFlags = false
	completeFlag(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}

// check checks the flags, and reads the files and variables that go with them.
func (f *serveFlags) check() (err error) {
	if f.tokens, err = readTokens(tokenEnv, "token-file", f.tokenFile); err != nil {
		return err
	}
	if f.readTokens, err = readTokens(readTokenEnv, "read-token-file", f.readTokenFile); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return fmt.Errorf("--addr is %q, not HOST:PORT", f.addr)
	}
	switch {
	case !f.hasTokens() && !isLoopback(host) && !f.insecureNoAuth:
		return fmt.Errorf("--addr %s can be reached from other machines, and there is no token: set $%s, or say --insecure-no-auth", f.addr, tokenEnv)
	case f.hasTokens() && f.insecureNoAuth:
		return errors.New("--insecure-no-auth and tokens exclude each other")
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	case f.maxBody < 1 || f.maxBody > 256<<20:
		return fmt.Errorf("--max-body is %d, not from 1 to %d", f.maxBody, 256<<20)
	case f.drainDelay < 0 || f.drainDelay > 5*time.Minute:
		return fmt.Errorf("--drain-delay is %v, not from 0s to 5m", f.drainDelay)
	case f.shutdownTimeout < time.Second || f.shutdownTimeout > time.Hour:
		return fmt.Errorf("--shutdown-timeout is %v, not from 1s to 1h", f.shutdownTimeout)
	}
	if _, err := parseLevel(f.logLevel); err != nil {
		return err
	}
	f.pushes, err = readPushes(f.push, f.pushFile)
	return err
}

func (f *serveFlags) hasTokens() bool { return len(f.tokens)+len(f.readTokens) > 0 }

// readTokens reads the tokens of a variable and of a file.
func readTokens(env, flag, file string) ([]string, error) {
	var tokens []string
	if list := os.Getenv(env); list != "" {
		tokens = strings.Split(list, ",")
	}
	if file == "" {
		return tokens, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	before := len(tokens)
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			tokens = append(tokens, string(line))
		}
	}
	if len(tokens) == before {
		return nil, fmt.Errorf("--%s: %s has no tokens", flag, file)
	}
	return tokens, nil
}

// isLoopback reports whether an address is one that only this machine reaches.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// hosts are the names by which browsers may call a service that has no tokens.
func (f *serveFlags) hosts() []string {
	host, _, _ := net.SplitHostPort(f.addr)
	if f.hasTokens() || !isLoopback(host) {
		return nil
	}
	return []string{"localhost", "127.0.0.1", "::1", host}
}

// scheme is that of the URLs that are served.
func (f *serveFlags) scheme() string {
	if f.tlsCert != "" {
		return "https"
	}
	return "http"
}
