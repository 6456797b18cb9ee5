package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clients is the folder with clients in other languages, which docs/polyglot.md shows.
const clients = "../../examples/clients"

// interpreters run the clients, by the ending of their files.
var interpreters = map[string][]string{
	".sh":  {"sh", "curl", "sed"}, // the first runs it, the others it calls
	".mjs": {"node"},
	".py":  {"python3"},
	".php": {"php"},
}

// client is a command that runs a client against a service.
func client(s *process, file string, args ...string) *exec.Cmd {
	runs := interpreters[filepath.Ext(file)][0]
	cmd := exec.Command(runs, append([]string{filepath.Join(clients, file)}, args...)...)
	cmd.Env = append(os.Environ(), "DUEQ_URL="+s.url, "DUEQ_TOKEN="+s.token, "NO_PROXY=*", "no_proxy=*")
	return cmd
}

// need skips the test if a program is missing, and fails it where everything has to
// be there.
func need(t *testing.T, programs []string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if os.Getenv("REQUIRE_REDIS") == "1" {
			t.Fatalf("%s is not on PATH; make programs installs it", name)
		}
		t.Skipf("%s is not on PATH", name)
	}
}

// Each language's publisher and worker do what they say: the publisher twice, the
// worker with an event that it handles and one that it cannot.
func TestClients(t *testing.T) {
	t.Parallel()
	for ending, programs := range interpreters {
		t.Run(strings.TrimPrefix(ending, "."), func(t *testing.T) {
			t.Parallel()
			need(t, programs)
			s := serveProcess(t, []string{"DUEQ_TOKEN=" + serveToken})
			s.token = serveToken
			for range 2 {
				out, err := client(s, "publish"+ending, "42").CombinedOutput()
				if err != nil || !strings.Contains(string(out), "order-42") {
					t.Fatalf("publish: %v\n%s", err, out)
				}
			}
			s.want(201, "", "POST", "/v1/topics/order.close/events", `{"id": "empty", "body": {}, "max_attempts": 1}`)
			var out bytes.Buffer
			worker := client(s, "worker"+ending)
			worker.Stdout, worker.Stderr = &out, &out
			worker.WaitDelay = time.Second // a curl that it has started ends with the service
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = worker.Process.Kill() // an error says that it has ended
				_ = worker.Wait()
				if text := out.String(); strings.Count(text, "closing order") != 1 || !strings.Contains(text, "42") {
					t.Errorf("the worker said:\n%s", text)
				}
			})
			s.eventually(200, "no order in it", "/v1/topics/order.close/events?state=dead")
			s.eventually(200, `"acked":1`, "/v1/topics/order.close/stats")
		})
	}
}

// A publisher that is refused says why, and fails.
func TestClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := serveProcess(t, []string{"DUEQ_TOKEN=" + serveToken})
	s.token = serveReadToken
	for ending, programs := range interpreters {
		t.Run(strings.TrimPrefix(ending, "."), func(t *testing.T) {
			need(t, programs)
			out, err := client(s, "publish"+ending, "42").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "Authorization") {
				t.Errorf("publish: %v\n%s", err, out)
			}
		})
	}
}

// docs/polyglot.md shows the clients as they are.
func TestPolyglotShowsClients(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/polyglot.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(clients + "/*")
	if err != nil || len(files) != 2*len(interpreters) {
		t.Fatalf("%q, %v, want a publisher and a worker for each language", files, err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(doc), "\n"+string(code)+"```\n") {
			t.Errorf("docs/polyglot.md does not show %s as it is", file)
		}
	}
}
