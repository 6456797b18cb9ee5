package dueqprom_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqprom"
)

func ExampleNewCollector() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	q, err := dueq.New(rdb, dueq.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer func() { _ = q.ShutDown(ctx) }()

	metrics := prometheus.NewRegistry()
	metrics.MustRegister(dueqprom.NewCollector(q, dueqprom.Options{Depths: true}))
	handler := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})

	if _, err := q.PublishEvent(ctx, "reminder", []byte("Ada"), time.Now().Add(time.Hour)); err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "dueq_events_published_total") || strings.HasPrefix(lines.Text(), "dueq_topic_events") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// dueq_events_published_total{topic="reminder"} 1
	// dueq_topic_events{state="dead",topic="reminder"} 0
	// dueq_topic_events{state="leased",topic="reminder"} 0
	// dueq_topic_events{state="ready",topic="reminder"} 0
	// dueq_topic_events{state="scheduled",topic="reminder"} 1
}
