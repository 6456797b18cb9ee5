package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/dueq-io/dueq/dueqhttp/internal/api"
)

// openAPI is the document, to hold requests and answers against.
type openAPI struct {
	spec *openapi3.T
	mux  *http.ServeMux // says which operation a request means

	mu sync.Mutex // the validator compiles schemas as it needs them, in maps that all share
}

var theDocument = sync.OnceValues(readOpenAPI)

func readOpenAPI() (*openAPI, error) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	o := &openAPI{mux: http.NewServeMux()}
	if o.spec, err = openapi3.NewLoader().LoadFromData(data); err != nil {
		return nil, err
	}
	for _, route := range o.routes() {
		o.mux.Handle(route, http.NotFoundHandler())
	}
	return o, nil
}

// routes are the document's operations, such as "GET /v1".
func (o *openAPI) routes() []string {
	var routes []string
	for path, item := range o.spec.Paths.Map() {
		for method := range item.Operations() {
			routes = append(routes, method+" "+path)
		}
	}
	slices.Sort(routes)
	return routes
}

// route is the operation that a request means, and its path's parameters; nil if
// there is none.
func (o *openAPI) route(r *http.Request) (*routers.Route, map[string]string) {
	_, pattern := o.mux.Handler(r)
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		return nil, nil
	}
	params := make(map[string]string)
	given := strings.Split(r.URL.EscapedPath(), "/")
	for i, segment := range strings.Split(path, "/") {
		if name, is := strings.CutPrefix(segment, "{"); is && i < len(given) {
			params[strings.TrimSuffix(name, "}")], _ = url.PathUnescape(given[i])
		}
	}
	item := o.spec.Paths.Value(path)
	return &routers.Route{Spec: o.spec, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)}, params
}

// check holds an answer against the document, and the request too if it was taken.
func (o *openAPI) check(r *http.Request, sent []byte, res *http.Response, got []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx := r.Context()
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	route, params := o.route(r)
	if route == nil || bytes.Contains(got, []byte("#no-route")) { // the document's mux cleans paths, ours refuses them
		return visit(o.spec.Components.Schemas["Problem"].Value, got)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r.Clone(ctx), PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true,
			ExcludeRequestBody: len(sent) == 0 || route.Operation.RequestBody.Value.Content["application/json"] == nil,
		},
	}
	if res.StatusCode < 300 {
		in.Request.Body = io.NopCloser(bytes.NewReader(sent))
		if err := openapi3filter.ValidateRequest(ctx, in); err != nil {
			return fmt.Errorf("the request was taken, but: %w", err)
		}
	}
	if media == "application/x-ndjson" {
		schema := route.Operation.Responses.Status(res.StatusCode).Value.Content[media].Schema.Value
		for line := range bytes.Lines(got) {
			if err := visit(schema, line); err != nil {
				return err
			}
		}
		return nil
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header, Options: in.Options}
	return openapi3filter.ValidateResponse(ctx, out.SetBodyBytes(got))
}

// visit holds JSON against a schema.
func visit(schema *openapi3.Schema, data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fmt.Errorf("%w in %.200q", err, data)
	}
	return schema.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// The document is one of OpenAPI 3.1, and has the same routes as the mux.
func TestDocument(t *testing.T) {
	t.Parallel()
	document, err := theDocument()
	if err != nil {
		t.Fatal(err)
	}
	if err := document.spec.Validate(t.Context()); err != nil || document.spec.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s: %v", document.spec.OpenAPI, err)
	}
	var served []string
	for _, r := range new(api.API).Routes() {
		served = append(served, r.Method+" "+r.Path)
	}
	slices.Sort(served)
	if documented := document.routes(); !slices.Equal(served, documented) {
		t.Errorf("served:\n%s\n\ndocumented:\n%s", strings.Join(served, "\n"), strings.Join(documented, "\n"))
	}
}

// What the document does not describe is found out: the tests that rely on it would
// not fail otherwise.
func TestDocumentIsStrict(t *testing.T) {
	t.Parallel()
	document, err := theDocument()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, path, sent string
		status             int
		media, got         string
		ok                 bool
	}{
		"as it should be":   {"GET", "/v1/topics", "", 200, "application/json", `{"topics": ["t"]}`, true},
		"another field":     {"GET", "/v1/topics", "", 200, "application/json", `{"topics": [], "more": 1}`, false},
		"a missing field":   {"GET", "/v1/topics", "", 200, "application/json", `{}`, false},
		"another type":      {"GET", "/v1/topics", "", 200, "application/json", `{"topics": [5]}`, false},
		"another status":    {"GET", "/v1/topics", "", 418, "application/json", `{}`, false},
		"a plain error":     {"GET", "/v1/topics", "", 503, "text/plain", `no`, false},
		"a taken request":   {"POST", "/v1/topics/t/events", `{"id": "a"}`, 201, "application/json", `{"id": "a"}`, true},
		"a wrong request":   {"POST", "/v1/topics/t/events", `{"idd": "a"}`, 201, "application/json", `{"id": "a"}`, false},
		"a wrong parameter": {"GET", "/v1/topics/t/events?state=lost", "", 200, "application/json", `{"events": []}`, false},
		"lines":             {"POST", "/v1/topics/t/batch", `{}`, 200, "application/x-ndjson", `{"line": 1, "id": "a"}` + "\n", true},
		"a wrong line":      {"POST", "/v1/topics/t/batch", `{}`, 200, "application/x-ndjson", `{"line": 0}` + "\n", false},
		"a wrong time": {
			"POST", "/v1/topics/t/events/a/requeue", "", 200, "application/json", `{"effect_time": "soon"}`, false,
		},
	} {
		r, err := http.NewRequest(c.method, c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.sent != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		res := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}}
		if err := document.check(r, []byte(c.sent), res, []byte(c.got)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The document itself is served, to everybody.
func TestServesDocument(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.token = ""
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.want(200, nil, "GET", "/v1/openapi.json", ""); got.body != string(want) {
		t.Errorf("%.100q", got.body)
	}
}
