package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// toxicPatience is how long a proxy may take to change its ways: it waits for
// each connection, and one that is stuck makes it wait for ever.
const toxicPatience = 3 * time.Second

// link is one worker's way to the server.
type link struct {
	mu    sync.Mutex // held while a fault lasts
	proxy *toxiproxy.Proxy
}

func newLink(name, upstream string) (*link, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // some toxics log whatever their proxy does
	silence := zerolog.Nop()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), silence)
	l := &link{proxy: toxiproxy.NewProxy(api, name, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), upstream)}
	l.proxy.Logger = &silence
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return l, nil
}

// freePort is a port that nobody listens on. It lies below the ports that systems
// give to outgoing connections, so that it stays free while a link is cut, and above
// those of our servers.
func freePort() (int, error) {
	for range 100 {
		port := 30_000 + rand.IntN(2_700)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port")
}

func (l *link) addr() string { return l.proxy.Listen }

// cut breaks all connections and refuses new ones.
func (l *link) cut() { l.proxy.Stop() }

// mend ends a cut.
func (l *link) mend() error {
	if err := l.proxy.Start(); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		return fmt.Errorf("proxy: %w", err)
	}
	return nil
}

// spoil adds a fault to all connections, those to come included.
func (l *link) spoil(toxic string) error {
	return l.change(func() error {
		_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
		return err
	})
}

// clear takes all faults away.
func (l *link) clear() error {
	return l.change(func() error {
		l.proxy.Toxics.ResetToxics(context.Background())
		return nil
	})
}

// change changes the proxy's ways. When that gets stuck, all connections are
// broken.
func (l *link) change(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	timer := time.NewTimer(toxicPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return wrapProxy(err)
	case <-timer.C:
	}
	l.cut()
	err := <-done
	return errors.Join(wrapProxy(err), l.mend())
}

func wrapProxy(err error) error {
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	return nil
}
