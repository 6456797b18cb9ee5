package dueqhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
)

// A receiver that takes only what was signed.
func ExampleVerify() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || dueqhttp.Verify(secret, r.Header, body, 5*time.Minute) != nil {
			http.Error(w, "not signed", http.StatusForbidden)
			return
		}
		fmt.Println(r.Header.Get("Dueq-Id"), r.Header.Get("Dueq-Attempt"), string(body))
	}))
	defer receiver.Close()

	for _, secret := range []string{secret, ""} {
		handler, err := dueqhttp.Forward(receiver.URL, dueqhttp.ForwardOptions{Secret: secret})
		if err != nil {
			fmt.Println(err)
			return
		}
		event := &dueq.Event{ID: "order-42", Topic: "order.close", Attempt: 1, EffectTime: time.Now(), Body: []byte(`{"order":42}`)}
		err = handler.HandleEvent(context.Background(), event) // as q.Subscribe("order.close", handler) does
		fmt.Println("acked:", err == nil)
	}
	// Output:
	// order-42 1 {"order":42}
	// acked: true
	// acked: false
}
