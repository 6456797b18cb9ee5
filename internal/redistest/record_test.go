package redistest_test

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test that keeps to itself whether it was skipped or failed.
type recorder struct {
	testing.TB
	skip, failure string
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skip = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	runtime.Goexit()
}

// record runs body as a test that can end without ending t.
func record(t *testing.T, body func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	return r
}
