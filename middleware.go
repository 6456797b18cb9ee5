package dueq

import (
	"fmt"
	"slices"
)

// Use wraps the handlers of later [Queue.Subscribe] calls, each of them by itself:
// what a middleware returns stands in the handler's place, and is called with the
// same ctx, event by event. The first middleware is the outermost, and those of a
// later Use lie within those of an earlier one. A nil middleware is passed over;
// what is claimed by a [Consumer] passes none.
func (q *Queue) Use(middleware ...func(Handler) Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, wrap := range middleware {
		if wrap != nil {
			q.middleware = append(q.middleware, wrap)
		}
	}
}

// wrap wraps each of the handlers in all middleware.
func (q *Queue) wrap(handlers []Handler) ([]Handler, error) {
	q.mu.Lock()
	middleware := slices.Clone(q.middleware)
	q.mu.Unlock()
	wrapped := slices.Clone(handlers)
	for i := range wrapped {
		for n, wrap := range slices.Backward(middleware) {
			if wrapped[i] = wrap(wrapped[i]); isNilHandler(wrapped[i]) {
				return nil, fmt.Errorf("middleware %d makes handler %d nil", n, i)
			}
		}
	}
	return wrapped, nil
}

func isNilHandler(h Handler) bool {
	f, ok := h.(HandlerFunc)
	return h == nil || ok && f == nil
}
