package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dueq-io/dueq/dueqhttp/internal/api"
)

const documentURL = "https://dueq.test/openapi.json"

// openAPI is the document, to hold requests and answers against. Its schemas are
// JSON Schema, as OpenAPI 3.1 has it.
type openAPI struct {
	document any
	mux      *http.ServeMux // that says which operation a request means

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

var theDocument = sync.OnceValues(readOpenAPI)

func readOpenAPI() (*openAPI, error) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	o := &openAPI{document: document, mux: http.NewServeMux(), compiler: jsonschema.NewCompiler()}
	o.compiler.AssertFormat()
	if err := o.compiler.AddResource(documentURL, document); err != nil {
		return nil, err
	}
	for _, route := range o.routes() {
		o.mux.HandleFunc(route, func(http.ResponseWriter, *http.Request) {})
	}
	return o, nil
}

// at finds what lies at a path in the document, references followed; nil if there
// is nothing.
func (o *openAPI) at(path ...string) (found any, pointer string) {
	found, pointer = o.document, "#"
	for _, name := range path {
		object, _ := found.(map[string]any)
		found = object[name]
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if object, ok := found.(map[string]any); ok && object["$ref"] != nil {
			pointer = object["$ref"].(string)
			found, _ = o.at(strings.Split(strings.TrimPrefix(pointer, "#/"), "/")...)
		}
	}
	return found, pointer
}

// routes are the document's operations, such as "GET /v1".
func (o *openAPI) routes() []string {
	var routes []string
	paths, _ := o.at("paths")
	for path, item := range paths.(map[string]any) {
		for method := range item.(map[string]any) {
			routes = append(routes, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(routes)
	return routes
}

// check holds JSON against the schema at a path.
func (o *openAPI) check(data []byte, path ...string) error {
	found, pointer := o.at(path...)
	if found == nil {
		return fmt.Errorf("the document has nothing at %q", path)
	}
	o.mu.Lock()
	schema, err := o.compiler.Compile(documentURL + pointer)
	o.mu.Unlock()
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w in %.200q", err, data)
	}
	return schema.Validate(value)
}

// checkExchange holds an answer against the document, and the request too if it
// was taken.
func (o *openAPI) checkExchange(r *http.Request, sent []byte, res *http.Response, got []byte) error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	_, pattern := o.mux.Handler(r)
	method, path, ok := strings.Cut(pattern, " ")
	if !ok || bytes.Contains(got, []byte("#no-route")) { // the document's mux cleans paths, ours refuses them
		return o.check(got, "components", "schemas", "Problem")
	}
	operation := []string{"paths", path, strings.ToLower(method)}
	in := func(more ...string) []string { return append(slices.Clone(operation), more...) }
	anything, _ := o.at(in("requestBody", "content", "*/*")...)
	if res.StatusCode < 300 && len(sent) > 0 && anything == nil && r.Header.Get("Content-Type") == "application/json" {
		if err := o.check(sent, in("requestBody", "content", "application/json", "schema")...); err != nil {
			return fmt.Errorf("the request was taken, but %w", err)
		}
	}
	answer := in("responses", strconv.Itoa(res.StatusCode))
	if found, _ := o.at(answer...); found == nil {
		return fmt.Errorf("%s does not document status %d", pattern, res.StatusCode)
	}
	if res.StatusCode == http.StatusNoContent {
		if len(got) > 0 {
			return fmt.Errorf("a body with status 204: %q", got)
		}
		return nil
	}
	// at follows references, so from here on the path is that of the answer itself.
	schema := append(answer, "content", media, "schema")
	if media != "application/x-ndjson" {
		return o.check(got, schema...)
	}
	for line := range bytes.Lines(got) {
		if err := o.check(line, schema...); err != nil {
			return err
		}
	}
	return nil
}

// The document and the mux have the same routes.
func TestDocumentRoutes(t *testing.T) {
	t.Parallel()
	document, err := theDocument()
	if err != nil {
		t.Fatal(err)
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

// Every schema of the document is one, every reference leads to something, every
// operation has a name of its own, and path parameters are those of the path.
func TestDocumentIsSound(t *testing.T) {
	t.Parallel()
	document, err := theDocument()
	if err != nil {
		t.Fatal(err)
	}
	schemas, _ := document.at("components", "schemas")
	for name := range schemas.(map[string]any) {
		if _, err := document.compiler.Compile(documentURL + "#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				if found, _ := document.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); found == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, element := range v {
				walk(element)
			}
		}
	}
	walk(document.document)
	names := make(map[string]string)
	for _, route := range document.routes() {
		method, path, _ := strings.Cut(route, " ")
		name, _ := document.at("paths", path, strings.ToLower(method), "operationId")
		if other := names[fmt.Sprint(name)]; name == nil || other != "" {
			t.Errorf("%s and %q share the operationId %v", route, other, name)
		}
		names[fmt.Sprint(name)] = route
		parameters, _ := document.at("paths", path, strings.ToLower(method), "parameters")
		inPath := 0
		for _, p := range list(parameters) {
			if ref, ok := p.(map[string]any)["$ref"].(string); ok {
				p, _ = document.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			p := p.(map[string]any)
			if p["in"] != "path" {
				continue
			}
			inPath++
			if !strings.Contains(path, "{"+p["name"].(string)+"}") || p["required"] != true {
				t.Errorf("%s: parameter %v", route, p)
			}
		}
		if want := strings.Count(path, "{"); inPath != want {
			t.Errorf("%s: %d path parameters, want %d", route, inPath, want)
		}
	}
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}

// The document itself is served, to everybody.
func TestServesDocument(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.token = ""
	res, err := http.Get(s.url + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, _ := io.ReadAll(res.Body)
	want, _ := os.ReadFile("openapi.json")
	if res.StatusCode != 200 || !json.Valid(got) || !bytes.Equal(got, want) {
		t.Errorf("%d %.100q", res.StatusCode, got)
	}
}
