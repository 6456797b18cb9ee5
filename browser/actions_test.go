package browser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
)

// notice is what the page says that the last action did.
func (b *tab) notice(want string) {
	b.t.Helper()
	if got := b.text(".notice"); !strings.Contains(got, want) {
		b.t.Errorf("notice %q, want %q", got, want)
	}
	b.await(`document.activeElement === document.querySelector('.notice')`) // so that it is read out
	if !eval[bool](b, `document.querySelector('.notice').getBoundingClientRect().top >= 0`) {
		b.t.Error("the notice is out of sight")
	}
}

// ask opens the dialog of a link, and waits until it is there.
func (b *tab) ask(action string) {
	b.t.Helper()
	b.do(
		chromedp.Click(chromedp.CSS(`a[data-dialog="ask-`+action+`"]`)),
		chromedp.WaitVisible(chromedp.CSS(`#ask-`+action+`[open]`)),
	)
}

func TestEventActions(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	for _, id := range []string{"a", "b", "c"} {
		s.publish("orders", id, "{}", time.Hour)
	}

	b.visit(s.url)
	b.click(`a[href="topic?topic=orders"]`)
	b.click(`button[aria-label="Fire a now"]`)
	b.notice("Event a is due now.")
	if due := s.order("a").EffectTime; time.Until(due) > time.Millisecond {
		t.Errorf("a is due at %v", due)
	}

	b.click(`tr[data-key="b"] th a`)
	b.do(chromedp.SendKeys(chromedp.CSS("#in"), "90"), chromedp.SetValue(chromedp.CSS("#unit"), "d"))
	b.click(`form[action="reschedule"] button`)
	b.notice("Event b is due in 8")
	if ahead := time.Until(s.order("b").EffectTime); ahead < 89*24*time.Hour || ahead > 91*24*time.Hour {
		t.Errorf("b is due in %v, want 90 days", ahead)
	}

	// A date is typed in the browser's zone.
	b.do(chromedp.SetValue(chromedp.CSS("#at"), "2031-05-06T07:08:09"))
	b.click(`form[action="reschedule"] button`)
	b.notice("Event b is due in")
	want := eval[float64](b, `new Date('2031-05-06T07:08:09').getTime()`)
	if got := s.order("b").EffectTime.UnixMilli(); got != int64(want) {
		t.Errorf("b is due at %d, want %d", got, int64(want))
	}

	b.ask("cancel")
	b.do(chromedp.Click(chromedp.CSS(`#ask-cancel button[formmethod="dialog"]`)), chromedp.WaitNotVisible(chromedp.CSS("#ask-cancel")))
	s.order("b") // it is there still
	b.ask("cancel")
	b.click("#ask-cancel button.danger")
	b.notice("Event b is cancelled.")
	if _, err := s.q.Get(t.Context(), "orders", "b"); !errors.Is(err, dueq.ErrNotFound) {
		t.Errorf("b: %v", err)
	}

	b.visit(s.url + "topic?topic=orders")
	b.do(chromedp.SendKeys(chromedp.CSS(`.find input[name="id"]`), "c"))
	b.click(".find button")
	b.click(`form[action="fire"] button`)
	b.notice("Event c is due now.")
}

func TestTopicActions(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	s.publish("orders", "later", "{}", time.Hour)
	s.kill("orders", "timeout at 10.0.0.7", "d-1", "d-2", "d-3")

	b.visit(s.url + "topic?topic=orders")
	b.click(`form[action="pause"] button`)
	b.notice("is paused")
	if !s.stats("orders").Paused {
		t.Error("the topic is not paused")
	}
	b.click(`form[action="resume"] button`)
	b.notice("is delivered again")
	if s.stats("orders").Paused {
		t.Error("the topic is paused")
	}

	b.click(`.tabs a.dead`)
	b.click(`button[aria-label="Requeue d-1 now"]`)
	b.notice("Event d-1 is due now.")
	if state := s.order("d-1").State; state == dueq.StateDead {
		t.Error("d-1 is dead")
	}

	b.do(chromedp.Click(chromedp.CSS(".filter summary")), chromedp.SendKeys(chromedp.CSS(`.filter input[name="prefix"]`), "d-2"))
	b.click(".filter button")
	if n := eval[int](b, `document.querySelectorAll('.events tbody tr').length`); n != 1 {
		t.Errorf("%d events pass the filter, want 1", n)
	}
	b.ask("requeue")
	b.click("#ask-requeue button.strong")
	b.notice("Requeued 1 event.")
	if dead := s.stats("orders").Dead; dead != 1 {
		t.Errorf("%d dead, want 1", dead)
	}

	b.visit(s.url + "topic?topic=orders")
	b.ask("purge")
	b.do(chromedp.SendKeys(chromedp.CSS(`#ask-purge input[name="typed"]`), "order"))
	b.click("#ask-purge button.danger")
	if title := b.text("h1"); title != "That did not work" {
		t.Errorf("purged with the wrong name: %s", title)
	}
	b.expectErrors("400")
	if n := s.stats("orders").Scheduled; n == 0 {
		t.Error("it was purged all the same")
	}
	b.click("main a.button")
	b.ask("purge")
	b.do(chromedp.SendKeys(chromedp.CSS(`#ask-purge input[name="typed"]`), "orders"))
	b.click("#ask-purge button.danger")
	b.notice("Forgot 4 events.")
	if stats := s.stats("orders"); stats.Scheduled+stats.Ready+stats.Dead != 0 {
		t.Errorf("left: %+v", stats)
	}
}

func TestCheckAndRepair(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	s.publish("orders", "kept", "{}", time.Hour)
	s.publish("orders", "lost", "{}", time.Hour)
	buckets, err := s.env.Client.Keys(t.Context(), "{"+s.env.Namespace+":orders}:bucket:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range buckets { // some other hand
		if err := s.env.Client.ZRem(t.Context(), key, "lost").Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.visit(s.url + "check")
	b.click(`form[action="check"] button`)
	if text := b.text("main"); !strings.Contains(text, "1 finding among 2 events") {
		t.Errorf("the page says: %s", text)
	}
	b.shoot("check-finding")
	b.ask("repair")
	b.click("#ask-repair button.strong")
	if text := b.text("main"); !strings.Contains(text, "all of them repaired") {
		t.Errorf("the page says: %s", text)
	}
	if state := s.order("lost").State; state != dueq.StateDead {
		t.Errorf("the event is %s", state)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	const full, read = "full-0123456789abcdef", "read-0123456789abcdef"
	s, b := serve(t, dueqhttp.Options{Tokens: []string{full}, ReadTokens: []string{read}}), open(t)
	s.publish("orders", "a", "{}", time.Hour)
	login := func(token string) {
		b.do(chromedp.SendKeys(chromedp.CSS(`input[name="token"]`), token))
		b.click(`form[action="login"] button`)
	}
	b.visit(s.url + "topic?topic=orders")
	login("wrong-0123456789abcdef")
	if text := b.text("#refused"); text != "This token is not valid." {
		t.Errorf("the page says: %s", text)
	}
	b.expectErrors("401")
	b.shoot("login")
	login(read)
	b.visit(s.url + "topic?topic=orders")
	if n := eval[int](b, `document.querySelectorAll('main form[method="post"], dialog').length`); n != 0 {
		t.Errorf("a reader is offered %d actions", n)
	}
	b.click(`form[action="logout"] button`)
	login(full)
	b.visit(s.url + "event?topic=orders&id=a")
	b.click(`form[action="fire"] button`)
	b.notice("Event a is due now.")
	if secret := eval[string](b, `document.cookie`); strings.Contains(secret, full) {
		t.Error("scripts can read the token")
	}
}

// TestKeyboard does with the keyboard alone what there is to do.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s, b := serve(t, dueqhttp.Options{}), open(t)
	s.publish("orders", "a", "{}", time.Hour)
	focus := func() string {
		return eval[string](b, `document.activeElement.id || document.activeElement.textContent.trim()`)
	}
	tabTo := func(want string) {
		t.Helper()
		for range 60 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if focus() == want {
				return
			}
		}
		t.Fatalf("Tab does not reach %q", want)
	}
	enter := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		if _, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
			t.Fatalf("press Enter on %q: %v", focus(), err)
		}
	}
	b.visit(s.url)
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := focus(); got != "Skip to content" {
		t.Errorf("Tab goes to %q first", got)
	}
	if ring := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); ring != "solid" {
		t.Errorf("the focus is not to be seen: outline %s", ring)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	if got := eval[string](b, `location.hash`); got != "#main" {
		t.Errorf("the skip link goes to %q", got)
	}
	tabTo("orders")
	enter()
	tabTo("a")
	enter()
	tabTo("Cancel the event…")
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible(chromedp.CSS("dialog")))
	if got := focus(); got != "Cancel the event…" {
		t.Errorf("after Escape the focus is on %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	tabTo("Cancel the event")
	enter()
	b.notice("Event a is cancelled.")
}
