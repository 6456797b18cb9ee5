package browser_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
)

const evil = `"><script>window.ran=1</script><img src=x onerror="window.ran=2"><a href="javascript:window.ran=3">`

// TestHostileText shows events that are made of HTML, and lets the pages update
// themselves with it.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	s.publish(evil, evil, evil, time.Hour, dueq.WithMetadata(map[string]string{evil: evil}))
	s.kill(evil, evil, "dead"+evil)
	topic := url.QueryEscape(evil)
	for _, page := range []string{
		"", "?search=" + topic, "topic?topic=" + topic, "topic?state=dead&topic=" + topic,
		"event?topic=" + topic + "&id=" + topic, "event?topic=" + topic + "&id=dead" + topic,
	} {
		b.visit(s.url + page)
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('h1').textContent = 'stale'`))
		b.await(`document.querySelector('h1').textContent !== 'stale'`) // an update came in
		if !strings.Contains(eval[string](b, `document.body.textContent`), "<script>window.ran=1</script>") {
			t.Errorf("%s: the text is not shown", page)
		}
		if eval[bool](b, `'ran' in window || document.querySelectorAll('main img, main script').length > 0`) {
			t.Errorf("%s: the text was run", page)
		}
	}
	b.shoot("hostile")
}

// TestLive watches a page change by itself.
func TestLive(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	s.publish("orders", "a", "{}", time.Hour)
	b.visit(s.url)
	b.do(chromedp.Focus(chromedp.CSS(`a[href="topic?topic=orders"]`)))
	b.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector('#search').focus(); document.querySelector('#search').value = 'typed'`))
	s.publish("mail", "b", "{}", time.Hour)
	b.await(`document.querySelector('a[href="topic?topic=mail"]') !== null`)
	if !eval[bool](b, `document.activeElement.id === 'search' && document.activeElement.value === 'typed'`) {
		t.Error("an update took the focus, or what was typed")
	}

	b.do(chromedp.Click(chromedp.CSS("button.live")))
	if text := b.text("button.live"); text != "Updates stopped" {
		t.Errorf("the button says %q", text)
	}
	b.do(chromedp.Click(chromedp.CSS("button.live")))
	s.publish("third", "c", "{}", time.Hour)
	b.await(`document.querySelector('a[href="topic?topic=third"]') !== null`)

	b.visit(s.url + "event?topic=orders&id=a")
	if err := s.q.Cancel(t.Context(), "orders", "a"); err != nil {
		t.Fatal(err)
	}
	b.await(`document.querySelector('h1').textContent === 'No such event'`)
}

// TestTimesAreLocal shows times in the browser's zone.
func TestTimesAreLocal(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kathmandu"}); err != nil {
		t.Fatal(err)
	}
	due := time.Date(2040, 1, 2, 20, 0, 0, 0, time.UTC) // 5:45 ahead
	s.publish("orders", "a", "{}", time.Until(due))
	b.visit(s.url + "event?topic=orders&id=a")
	if text := b.text(".lead time"); text != "2040-01-03 01:45:00" {
		t.Errorf("due %s", text)
	}
	b.visit(s.url + "topic?topic=orders&since=2040-01-02T20:00:00Z")
	if got := eval[string](b, `document.querySelector('input[name="since"]').value`); got != "2040-01-03T01:45:00" && got != "2040-01-03T01:45" {
		t.Errorf("the filter shows %s", got)
	}
	b.click(".filter button")
	if n := eval[int](b, `document.querySelectorAll('.events tbody tr').length`); n != 1 {
		t.Errorf("%d events are due then, want 1", n)
	}
}

// TestWithoutJavaScript reads and acts where scripts do not run.
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	s.publish("orders", "a", "{}", time.Hour)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.visit(s.url + "event?topic=orders&id=a")
	if text := b.text(".lead time"); !strings.HasSuffix(text, " UTC") {
		t.Errorf("due %s", text)
	}
	b.click(`a[data-dialog="ask-cancel"]`)
	b.click(`form[action="cancel"] button.danger`)
	if text := b.text(".notice"); text != "Event a is cancelled." {
		t.Errorf("notice %q", text)
	}
}

// TestWidths has no page that is wider than its window, and no control too small
// to be hit.
func TestWidths(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{Ephemeral: true}), open(t)
	long := strings.Repeat("long-", 45) + "name"
	s.publish(long, long, strings.Repeat("x", 4000), time.Hour, dueq.WithMetadata(map[string]string{long: long}))
	s.kill(long, strings.Repeat("error-", 300), "dead-"+long)
	if err := s.queue().Subscribe("orders", dueq.HandlerFunc(nothing)); err != nil {
		t.Fatal(err)
	}
	s.eventually("the session is seen", func() bool {
		sessions, err := s.q.Sessions(t.Context())
		return err == nil && len(sessions) > 0
	})
	for _, width := range []int64{320, 390, 768, 1280} {
		b.do(chromedp.EmulateViewport(width, 800))
		for _, page := range []string{
			"", "topic?topic=" + long, "topic?state=dead&prefix=d&topic=" + long, "event?topic=" + long + "&id=" + long,
			"event?topic=" + long + "&id=dead-" + long, "sessions", "check", "confirm?do=purge&topic=" + long, "login",
		} {
			b.visit(s.url + page)
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("at %d pixels %.40s is %d too wide", width, page, over)
				b.shoot(fmt.Sprintf("too-wide-%d", width))
			}
			small := eval[string](b, `[...document.querySelectorAll('main button, main .button, main input:not([type=hidden]), main select')]
				.filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 24).map(e => e.outerHTML).join('\n')`)
			if small != "" {
				t.Errorf("at %d pixels %.40s has controls under 24 pixels:\n%s", width, page, small)
			}
		}
	}
}

// TestContrast measures, light and dark, every text against what it stands on.
func TestContrast(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{Ephemeral: true}), open(t)
	s.publish("orders", "a", `{"n":1,"s":"x","b":true}`, time.Hour)
	s.kill("orders", "broken", "dead")
	if err := s.q.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.look(scheme, 1280, 900)
		for _, page := range []string{"", "topic?topic=orders&state=dead", "event?topic=orders&id=a", "event?topic=orders&id=dead", "check", "confirm?do=purge&topic=orders"} {
			b.visit(s.url + page)
			if faint := eval[string](b, faintTexts); faint != "" {
				t.Errorf("%s %s: too little contrast:\n%s", scheme, page, faint)
			}
		}
		if ground := eval[string](b, `getComputedStyle(document.body).backgroundColor`); (ground == "rgb(250, 249, 246)") != (scheme == "light") {
			t.Errorf("%s: on %s", scheme, ground)
		}
	}
}

// faintTexts lists the texts with a contrast under 4.5 (WCAG 2.2, 1.4.3).
const faintTexts = `(() => {
	const rgb = (c) => c.match(/[\d.]+/g).map(Number);
	const luminance = (c) => {
		const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = (e) => {
		for (; e; e = e.parentElement) {
			const c = rgb(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const faint = new Set();
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (!texts.currentNode.data.trim() || !e.checkVisibility() || e.closest('.sr, .skip, script, option')) continue;
		const [a, b] = [luminance(rgb(getComputedStyle(e).color)), luminance(ground(e))];
		const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (contrast < 4.5) faint.add(contrast.toFixed(2) + ' ' + e.tagName + '.' + e.className + ' ' + texts.currentNode.data.trim().slice(0, 40));
	}
	return [...faint].join('\n');
})()`
