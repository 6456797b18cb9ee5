package browser_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dueq-io/dueq/internal/redistest"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// chrome is the browser that all tests share, each with cookies of its own.
var chrome sharedChrome

type sharedChrome struct {
	once sync.Once
	ctx  context.Context
	end  []func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	chrome.close()
	os.Exit(code)
}

// start starts the browser.
func (c *sharedChrome) start() {
	bin, err := findChrome()
	if err != nil {
		c.err = err
		return
	}
	profile, err := os.MkdirTemp("", "dueq-browser-")
	if err != nil {
		c.err = err
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(bin), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(patience),
	)
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(alloc)
	c.ctx, c.err = ctx, chromedp.Do(ctx)
	c.end = []func(){end, endAlloc, func() { _ = os.RemoveAll(profile) }}
}

func (c *sharedChrome) close() {
	for _, end := range c.end {
		end()
	}
}

func findChrome() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", errors.New("there is no chromium on PATH")
}

// tab is a page of the browser with cookies of its own. When the test ends it
// must have had no errors on its console, and have broken no rule of the
// content security policy.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// open opens a tab.
func open(t *testing.T) *tab {
	t.Helper()
	chrome.once.Do(chrome.start)
	if chrome.err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" {
			t.Fatalf("start a browser: %v", chrome.err)
		}
		t.Skipf("start a browser: %v", chrome.err)
	}
	ctx, end := chromedp.NewContext(chrome.ctx, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	b := &tab{t: t, ctx: ctx}
	var listening sync.WaitGroup
	messages := chromedp.Console(ctx)
	listening.Go(func() {
		for m, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			b.hear(m)
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			b.shoot("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
		cancel()
		end()
		listening.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.errors {
			t.Errorf("on the console: %s", text)
		}
	})
	b.look("light", 1280, 900)
	return b
}

// hear notes what goes wrong in the page.
func (b *tab) hear(m chromedp.ConsoleMessage) {
	switch m.Type {
	case chromedp.ConsoleWarning, chromedp.ConsoleError, chromedp.ConsoleException:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.errors = append(b.errors, fmt.Sprintf("%s: %s %s", m.Type, m.Text, m.URL))
	}
}

// expectErrors forgets those errors so far that contain text; there must be some, or
// come yet.
func (b *tab) expectErrors(text string) {
	b.t.Helper()
	redistest.Eventually(b.t, "an error on the console that contains "+text, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		before := len(b.errors)
		b.errors = slices.DeleteFunc(b.errors, func(e string) bool { return strings.Contains(e, text) })
		return len(b.errors) < before
	})
}

// do has the browser do something.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// run has the browser find something out.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// click clicks what a selector finds, and waits for the page that follows.
func (b *tab) click(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.t.Fatalf("click %s: %v", selector, err)
	}
}

// visit opens a page.
func (b *tab) visit(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// eval is what a JavaScript expression gives.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// text is the text of what a selector finds first.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Text(chromedp.CSS(selector)))
}

// await waits until a JavaScript expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(0))); err != nil {
		b.t.Fatalf("await %s: %v", expression, err)
	}
}

// shoot keeps a picture of what the tab shows among those of this test run.
func (b *tab) shoot(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll("screenshots", 0o755)
	}
	if err == nil {
		err = os.WriteFile("screenshots/"+name+".png", png, 0o644)
	}
	if err != nil {
		b.t.Errorf("keep a picture: %v", err)
	}
}
