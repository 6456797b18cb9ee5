package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/dueqprom"
)

const (
	// Timeouts of the server. What takes longer, and may, says so itself.
	headerTimeout = 10 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	// closeTimeout is how long the last answers have to leave.
	closeTimeout = 5 * time.Second
)

// serving is a service that runs.
type serving struct {
	flags   *serveFlags
	log     *zap.Logger
	q       *dueq.Queue
	pushers []*pusher
	handler *dueqhttp.Handler
	server  *http.Server
}

// run serves on the server that cmd's flags name until a signal comes.
func (f *serveFlags) run(cmd *cobra.Command) error {
	level, _ := parseLevel(f.logLevel) // checked before
	log := newJSONLogger(cmd.ErrOrStderr(), level)
	server, err := connect(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then
	s, err := f.assemble(server, namespace(cmd), log)
	if err != nil {
		return usageError{err}
	}
	listener, err := f.listen()
	if err == nil {
		err = s.startPushing(f.pushes)
	}
	if err != nil {
		return errors.Join(err, s.endQueues(cmd.Context()))
	}
	f.greet(cmd.OutOrStdout(), server, listener.Addr())
	log.Info("serving", zap.String("addr", listener.Addr().String()), zap.String("redis", server.name),
		zap.Bool("tls", f.tlsCert != ""), zap.Bool("tokens", f.hasTokens()), zap.Int("pushes", len(f.pushes)))
	if server.embedded != nil {
		log.Warn("Redis is embedded: nothing is kept, all events are gone when this process ends")
	}
	if f.insecureNoAuth {
		log.Warn("there are no tokens: whoever reaches the address may do everything")
	}
	return s.serve(cmd.Context(), listener)
}

// assemble makes all that serves, without starting it. Its errors are the
// caller's.
func (f *serveFlags) assemble(server *server, ns string, log *zap.Logger) (*serving, error) {
	opts := dueq.Options{Namespace: ns, MaxBody: f.maxBody, Logger: log}
	q, err := dueq.New(server.client, opts)
	if err != nil {
		return nil, err
	}
	s := &serving{flags: f, log: log, q: q}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	register(metrics, "service", q, dueqprom.Options{Depths: true})
	var shown []dueqhttp.Push
	for i := range f.pushes {
		p, err := newPusher(server, &f.pushes[i], opts)
		if err != nil {
			return nil, errors.Join(err, s.endQueues(context.Background()))
		}
		s.pushers = append(s.pushers, p)
		register(metrics, "push "+f.pushes[i].Topic, p.q, dueqprom.Options{})
		shown = append(shown, f.pushes[i].shown())
	}
	s.handler, err = dueqhttp.New(q, dueqhttp.Options{
		Tokens: f.tokens, ReadTokens: f.readTokens, Hosts: f.hosts(), MaxBody: f.maxBody, Push: shown,
		Metrics:   promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorLog: zap.NewStdLog(log)}),
		Ephemeral: server.embedded != nil, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, s.endQueues(context.Background()))
	}
	errorLog, _ := zap.NewStdLogAt(log, zap.WarnLevel) // the level is one
	s.server = &http.Server{
		Handler: s.handler, ErrorLog: errorLog, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}
	return s, nil
}

// register adds the metrics of one of the process's queues.
func register(metrics prometheus.Registerer, name string, q *dueq.Queue, opts dueqprom.Options) {
	prometheus.WrapRegistererWith(prometheus.Labels{"queue": name}, metrics).MustRegister(dueqprom.NewCollector(q, opts))
}

// listen opens the port, with TLS if there is a certificate.
func (f *serveFlags) listen() (net.Listener, error) {
	var config *tls.Config
	if f.tlsCert != "" {
		certificate, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return nil, err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return listener, nil
}

// greet says what is served where.
func (f *serveFlags) greet(w io.Writer, s *server, addr net.Addr) {
	reach := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		reach = fmt.Sprintf("localhost:%d", tcp.Port) // one of the addresses
	}
	url := f.scheme() + "://" + reach
	fmt.Fprintf(w, "dueq serve: %s/ is the dashboard, %s/v1 the API\n", url, url)
	fmt.Fprintf(w, "Redis: %s\n", s.name)
	if s.embedded != nil {
		fmt.Fprint(w, "       It keeps nothing: all is in memory, and gone when the service ends.\n"+
			"       With --redis redis://localhost:6379 it serves a server of yours.\n")
	}
	for _, p := range f.pushes {
		fmt.Fprintf(w, "Push:  %s\n", p.Topic)
	}
	if !f.hasTokens() {
		fmt.Fprintf(w, "Try:   curl %s/v1/topics/hello/events --json '{\"body\": \"world\", \"in\": \"10s\"}'\n", url)
	}
}

// startPushing starts the pushers.
func (s *serving) startPushing(pushes []push) error {
	for i, p := range s.pushers {
		if err := p.q.Subscribe(pushes[i].Topic, pushes[i].handler); err != nil {
			return err
		}
	}
	return nil
}

// serve serves until ctx ends, and then ends in order.
func (s *serving) serve(ctx context.Context, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.server.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.endQueues(ctx))
	case <-ctx.Done():
	}
	s.log.Info("draining")
	s.handler.Drain()
	delay := time.NewTimer(s.flags.drainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case err := <-failed:
		return errors.Join(err, s.endQueues(ctx))
	}
	err := s.endQueues(ctx) // while events that callers hold can still be settled
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // whoever is still there has been told nothing since long
	}
	if closed := <-failed; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.log.Warn("not all was finished in time; other processes will have it", zap.Duration("shutdown_timeout", s.flags.shutdownTimeout))
	case err != nil:
		return err
	}
	s.log.Info("ended")
	return nil
}

// endQueues lets what runs finish, in all queues at once.
func (s *serving) endQueues(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.flags.shutdownTimeout)
	defer cancel()
	errs := make([]error, len(s.pushers)+1)
	var wg sync.WaitGroup
	for i, p := range s.pushers {
		wg.Go(func() { errs[i] = p.end(ctx) })
	}
	wg.Go(func() { errs[len(s.pushers)] = s.q.ShutDown(ctx) })
	wg.Wait()
	return errors.Join(errs...)
}
