package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/redistest"
)

const (
	serveToken     = "full-token-0123456789"
	serveReadToken = "read-token-0123456789"
)

// served is a `dueq serve` that runs in this process.
type served struct {
	t      *testing.T
	url    string
	greets string // the first line of stdout
	token  string
	client *http.Client

	cancel func()
	code   chan int
	mu     sync.Mutex
	log    bytes.Buffer
}

// Write takes the log.
func (s *served) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

// serve starts the command on a free port. It ends with the test, with code 0.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	s := &served{t: t, client: &http.Client{Transport: &http.Transport{}}, code: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	in, out := io.Pipe()
	go func() {
		s.code <- command.Run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0", "--redis", ""}, args...), nil, out, s)
		_ = out.Close()
	}()
	lines := bufio.NewReader(in)
	var err error
	if s.greets, err = lines.ReadString('\n'); err != nil {
		t.Fatalf("no greeting: %v\n%s", err, s.text())
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	s.url = strings.TrimSuffix(strings.Fields(s.greets)[2], "/")
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.end()
	})
	return s
}

// end ends the command as a signal would.
func (s *served) end() {
	s.t.Helper()
	s.cancel()
	select {
	case code := <-s.code:
		s.code <- code
		if code != 0 {
			s.t.Errorf("exit code %d\n%s", code, s.text())
		}
	case <-time.After(time.Minute):
		s.t.Fatalf("it does not end:\n%s", s.text())
	}
}

func (s *served) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// call makes a call with JSON, and returns the answer.
func (s *served) call(method, path, body string) (status int, got string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// want makes a call that has to be answered with a status and a text.
func (s *served) want(status int, text, method, path, body string) string {
	s.t.Helper()
	code, got := s.call(method, path, body)
	if code != status || !strings.Contains(got, text) {
		s.t.Fatalf("%s %s: %d %s, want %d %q", method, path, code, got, status, text)
	}
	return got
}

// claim claims one event of a topic, and returns its receipt.
func (s *served) claim(topic string) (receipt string) {
	s.t.Helper()
	var out struct{ Events []struct{ Receipt string } }
	got := s.want(200, "receipt", "POST", "/v1/topics/"+topic+"/claim", `{"wait": "30s"}`)
	if err := json.Unmarshal([]byte(got), &out); err != nil {
		s.t.Fatal(err)
	}
	return out.Events[0].Receipt
}

func TestServe(t *testing.T) {
	t.Parallel()
	s := serve(t, "--drain-delay", "10ms")
	s.want(200, `"ephemeral":true`, "GET", "/readyz", "")
	s.want(200, `"ephemeral":true`, "GET", "/v1", "")
	s.want(201, `"id":"a"`, "POST", "/v1/topics/t/events", `{"id": "a", "body": 1}`)
	s.want(204, "", "POST", "/v1/deliveries/"+s.claim("t")+"/ack", "")
	s.want(200, `dueq_events_published_total{queue="service",topic="t"} 1`, "GET", "/metrics", "")
	s.want(200, "<title>", "GET", "/", "")
	s.end()
	messages := make(map[string]int)
	for line := range strings.Lines(s.text()) {
		var entry struct {
			Level, Msg, Route string
			Status            int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		messages[entry.Msg]++
	}
	if messages["request"] != 6 || messages["serving"] != 1 || messages["draining"] != 1 || messages["ended"] != 1 ||
		!strings.Contains(s.text(), "nothing is kept") || !strings.Contains(s.text(), "POST /v1/topics/{topic}/events") {
		t.Errorf("log:\n%s", s.text())
	}
}

// It listens on all addresses if told to, and names one that can be opened.
func TestServeEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t, "--addr", "0.0.0.0:0", "--insecure-no-auth")
	if !strings.HasPrefix(s.url, "http://localhost:") {
		t.Errorf("it greets with %q", s.url)
	}
	s.want(200, "<title>", "GET", "/", "")
}

// It keeps what it is given on a Redis of its own, and starts again with it.
func TestServeOnServer(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := serve(t, "--redis", "redis://"+r.Addr(), "--namespace", "shop")
	s.want(200, `"ephemeral":false`, "GET", "/readyz", "")
	s.want(201, "", "POST", "/v1/topics/t/events", `{"id": "a", "in": "1h"}`)
	s.end()
	s = serve(t, "--redis", "redis://"+r.Addr(), "--namespace", "shop")
	s.want(200, `"scheduled"`, "GET", "/v1/topics/t/events/a", "")
	if strings.Contains(s.text(), "nothing is kept") {
		t.Errorf("log:\n%s", s.text())
	}
}

func TestServeWithTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("\n"+serveToken+"\nother-token-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DUEQ_READ_TOKEN", serveReadToken+",second-"+serveReadToken)
	s := serve(t, "--token-file", file, "--log-level", "debug")
	s.want(401, "unauthorized", "GET", "/v1/topics", "")
	s.want(401, "unauthorized", "GET", "/metrics", "")
	s.want(200, "ok", "GET", "/readyz", "")
	for _, s.token = range []string{serveReadToken, "second-" + serveReadToken} {
		s.want(200, "topics", "GET", "/v1/topics", "")
		s.want(403, "read-only", "POST", "/v1/topics/t/purge", "")
	}
	for _, s.token = range []string{serveToken, "other-token-0123456789"} {
		s.want(201, "id", "POST", "/v1/topics/t/events", `{"text": "secret body"}`)
	}
	if log := s.text(); strings.Contains(log, "-token-") || strings.Contains(log, "secret body") {
		t.Errorf("log:\n%s", log)
	}
}

// Without tokens pages of other sites are kept away, be it by name or by origin.
func TestServeKeepsOtherSitesAway(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for header, value := range map[string]string{"Host": "evil.test:7700", "Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"} {
		r, err := http.NewRequest("POST", s.url+"/v1/topics/t/events", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if r.Header.Set(header, value); header == "Host" {
			r.Host = value
		}
		res, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 403 {
			t.Errorf("%s: %s: %d", header, value, res.StatusCode)
		}
	}
	s.want(200, `{"topics":[]}`, "GET", "/v1/topics", "")
}

// certificate makes a self-signed certificate for 127.0.0.1, in files.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(public)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", public), write("key.pem", "PRIVATE KEY", secret), pool
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	s := serve(t, "--tls-cert", cert, "--tls-key", key)
	s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	if !strings.HasPrefix(s.url, "https://") {
		t.Errorf("URL %s", s.url)
	}
	s.want(201, `"id":"a"`, "POST", "/v1/topics/t/events", `{"id": "a"}`)
	s.want(204, "", "POST", "/v1/deliveries/"+s.claim("t")+"/ack", "")
	code, _, stderr := run(t.Context(), nil, "serve", "--redis", "", "--addr", "127.0.0.1:0", "--tls-cert", key, "--tls-key", cert)
	if code != 1 || !strings.Contains(stderr, "--tls-cert, --tls-key: ") {
		t.Errorf("the wrong files: exit code %d, %s", code, stderr)
	}
}

func TestServePush(t *testing.T) {
	const secret = "push-secret-0123456789"
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = dueqhttp.Verify(secret, r.Header, body, time.Minute)
		}
		if err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
		got <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(receiver.Close)
	file := filepath.Join(t.TempDir(), "push.json")
	config := `[{"topic": "bad", "url": "` + receiver.URL + `/bad?key=hidden", "timeout": "5s", "concurrency": 2, "max_attempts": 3, "secret": "` + secret + `"}]`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DUEQ_PUSH_SECRET", secret)
	s := serve(t, "--push", "good="+receiver.URL+"/good", "--push-file", file)
	s.want(201, "", "POST", "/v1/topics/good/events", `{"body": {"n": 1}}`)
	if line := <-got; line != `/good {"n": 1}` {
		t.Errorf("pushed %q", line)
	}
	s.want(201, "", "POST", "/v1/topics/bad/events", `{"id": "b", "text": "x"}`)
	if line := <-got; line != "/bad x" {
		t.Errorf("pushed %q", line)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if _, text := s.call("GET", "/v1/topics/bad/events/b", ""); strings.Contains(text, `"dead"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the refused event is not dead")
		}
	}
	list := s.want(200, `{"topic":"bad","url":"`+receiver.URL+`/bad","concurrency":2,"timeout_seconds":5,"signed":true}`, "GET", "/v1/push", "")
	if strings.Contains(list+s.text(), "hidden") || strings.Contains(list+s.text(), secret) {
		t.Errorf("a secret shows: %s\n%s", list, s.text())
	}
	s.want(200, `queue="push good"`, "GET", "/metrics", "")
}

func TestServeUsage(t *testing.T) {
	t.Setenv("DUEQ_REDIS", "")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args, env string
		want      string
	}{
		{"--addr 7700", "", "not HOST:PORT"},
		{"--addr :7700", "", "--addr :7700 can be reached from other machines"},
		{"--addr 0.0.0.0:7700", "", "--insecure-no-auth"},
		{"--addr 192.168.1.1:7700", "", "$DUEQ_TOKEN"},
		{"--addr example.test:7700", "", "$DUEQ_TOKEN"},
		{"--insecure-no-auth", serveToken, "exclude each other"},
		{"", "hunter2", "full token 1"},
		{"", serveToken + ",", "full token 2"},
		{"--token-file " + file("\n"), "", "has no tokens"},
		{"--token-file /nowhere", "", "--token-file: "},
		{"--tls-cert x", "", "need each other"},
		{"--max-body 0", "", "--max-body is 0"},
		{"--drain-delay -1s", "", "--drain-delay is -1s"},
		{"--shutdown-timeout 0s", "", "--shutdown-timeout is 0s"},
		{"--log-level loud", "", "--log-level is"},
		{"--push x", "", "not TOPIC=URL"},
		{"--push x=ftp://h", "", `push of topic "x": `},
		{"--push x=http://h --push x=http://i", "", "given twice"},
		{"--push-file /nowhere", "", "--push-file: "},
		{"--push-file " + file(`[{"topic": "x", "link": "y"}]`), "", `unknown field "link"`},
		{"--push-file " + file(`[{"topic": "x", "url": "http://h", "timeout": "soon"}]`), "", `timeout is "soon"`},
		{"--push-file " + file(`[{"topic": "x", "url": "http://h", "concurrency": -1}]`), "", "Concurrency is -1"},
		{"--push-file " + file(`[{"topic": "x", "url": "http://h", "secret": "short"}]`), "", "Secret"},
		{"--namespace a:b", "", "Namespace"},
		{"extra", "", "called with 1 argument"},
	} {
		t.Setenv("DUEQ_TOKEN", c.env)
		code, stdout, stderr := run(t.Context(), nil, append([]string{"serve"}, strings.Fields(c.args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("dueq serve %s: exit code %d, stdout %q, stderr %q, want 2 and %q", c.args, code, stdout, stderr, c.want)
		}
	}
	t.Setenv("DUEQ_TOKEN", "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	code, stdout, stderr := run(t.Context(), nil, "serve", "--addr", taken.Addr().String())
	if code != 1 || stdout != "" || !strings.Contains(stderr, "in use") {
		t.Errorf("a port that is taken: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
