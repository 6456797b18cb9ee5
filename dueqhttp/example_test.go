package dueqhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
)

func ExampleNew() {
	redisServer, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer redisServer.Close()
	rdb := redis.NewClient(&redis.Options{Addr: redisServer.Addr()})
	defer func() { _ = rdb.Close() }()
	q, err := dueq.New(rdb, dueq.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = q.ShutDown(context.Background()) }()

	h, err := dueqhttp.New(q, dueqhttp.Options{Tokens: []string{"correct-horse-battery"}})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/dueq/", http.StripPrefix("/dueq", h))

	r := httptest.NewRequest(http.MethodPost, "/dueq/v1/topics/order.close/events",
		strings.NewReader(`{"id": "order-42", "body": {"order": 42}, "in": "30m"}`))
	r.Header.Set("Authorization", "Bearer correct-horse-battery")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	fmt.Printf("%d %s %s", w.Code, w.Header().Get("Location"), body)
	// Output: 201 events/order-42 {"id":"order-42"}
}
