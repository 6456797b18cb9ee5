package problem

import (
	"net/http"
	"strings"
)

// Mux serves what a mux has, and answers with a problem where it has nothing, be
// it the path or the method. Paths with empty or dot segments are not cleaned up
// by redirects: an id that went missing must not turn one call into another.
func Mux(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !clean(r.URL.EscapedPath()) {
			NoRoute.New("the path has an empty segment, or one of dots").Write(w)
			return
		}
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		var refused refusal
		handler.ServeHTTP(&refused, r)
		if refused.status == http.StatusMethodNotAllowed {
			p := NoMethod.New("%.80s is not among %s", r.Method, refused.Header().Get("Allow"))
			p.Allow = refused.Header().Get("Allow")
			p.Write(w)
			return
		}
		NoRoute.New("the API is under /v1; /v1/openapi.json describes it").Write(w)
	})
}

func clean(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		if s == "." || s == ".." || s == "" && i < len(segments)-1 {
			return false
		}
	}
	return true
}

// refusal takes down how a mux refuses a request.
type refusal struct {
	header http.Header
	status int
}

// Header is what the answer's header would be.
func (r *refusal) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

// WriteHeader takes down the status.
func (r *refusal) WriteHeader(status int) { r.status = status }

// Write drops the text.
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
