package browser_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
)

const orderBody = `{"order":48231,"customer":{"id":"c-0417","name":"Åsa Lindqvist","vip":true},"total":129.90,"currency":"EUR",` +
	`"items":[{"sku":"A-204","name":"Kettle","n":1,"price":89.95},{"sku":"B-051","name":"Thé vert","n":2,"price":19.975}],` +
	`"coupon":null,"note":"close if it is not paid <b>in time</b>"}`

// TestScreenshots keeps a picture of each page in the folder screenshots, of a
// queue that has been busy for as many samples as SCREENSHOTS_SAMPLES says, or 4.
func TestScreenshots(t *testing.T) {
	samples := 4
	if text := os.Getenv("SCREENSHOTS_SAMPLES"); text != "" {
		var err error
		if samples, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, dueqhttp.Options{})
	s.shop()
	light := func(b *tab) { b.look("light", 1280, 960) }
	dark := func(b *tab) { b.look("dark", 1280, 960) }
	phone := func(b *tab) { b.look("light", 390, 844) }
	b := open(t)
	b.visit(s.url)
	for range samples { // so that its charts show something
		const drawn = `document.querySelector('svg path.handled').getAttribute('d')`
		b.await(fmt.Sprintf("%s !== %q", drawn, eval[string](b, drawn)))
	}
	s.publish("order.close", "order-48231", orderBody, 25*time.Minute, dueq.WithMetadata(map[string]string{"source": "checkout", "trace": "4bf92f3577b34da6"}))
	for _, p := range []struct {
		name, path string
		as         func(*tab)
	}{
		{"topics", "", light},
		{"topics-dark", "", dark},
		{"topics-phone", "", phone},
		{"topic", "topic?topic=order.close&ahead=hour", light},
		{"topic-dark", "topic?topic=webhook.retry", dark},
		{"topic-phone", "topic?topic=webhook.retry", phone},
		{"events-phone", "topic?topic=webhook.retry#events", phone},
		{"topic-dead", "topic?topic=payment.capture&state=dead", light},
		{"event", "event?topic=order.close&id=order-48231", light},
		{"event-dead", "event?topic=payment.capture&id=cap-7f31", dark},
		{"event-phone", "event?topic=payment.capture&id=cap-7f31", phone},
		{"sessions", "sessions", light},
		{"sessions-phone", "sessions", phone},
		{"check", "check", light},
		{"nothing", "topic?topic=no.such.topic", light},
		{"confirm", "confirm?do=purge&topic=order.close", light},
	} {
		p.as(b)
		b.visit(s.url + p.path)
		b.shoot(p.name)
	}
	light(b)
	b.visit(s.url + "topic?topic=order.close")
	b.do(chromedp.Click(chromedp.CSS(`[data-dialog="ask-purge"]`)), chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	b.shoot("dialog")
	b.visit(s.url + "check")
	b.click(`form[action="check"] button`)
	b.shoot("check-well")
}

// look gives the tab a size, and makes it prefer light or dark, and no motion.
func (b *tab) look(scheme string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height, chromedp.EmulateScale(2)))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}
