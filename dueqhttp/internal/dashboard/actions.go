package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/internal/digits"
)

// action does what a form asks for, and says what it has done, and which page
// shows that.
type action func(*http.Request) (notice, next string, err error)

// act serves an action to those who may change something.
func (d *dashboard) act(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !d.admit(w, r, access.Full) {
			return
		}
		if err := r.ParseForm(); err != nil {
			d.fail(w, r, fmt.Errorf("%w: %w", errInput, err))
			return
		}
		takeYourTime(w)
		notice, next, err := do(r)
		if err != nil {
			d.fail(w, r, err)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: noticeCookie, Value: url.QueryEscape(notice), MaxAge: 60,
			HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		redirect(w, safeBack(r.PostFormValue("back"), next))
	}
}

// takeYourTime lifts the server's time limit on a response that may take long.
func takeYourTime(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // it may not be known here
}

// names are the topic and the id that a form is about.
func names(r *http.Request) (topic, id, topicPage, eventPage string) {
	topic, id = r.PostFormValue("topic"), r.PostFormValue("id")
	return topic, id, with("topic", "topic", topic), with("event", "topic", topic, "id", id)
}

// fire makes an event due. One that the form shows as dead starts anew if it still
// is.
func (d *dashboard) fire(r *http.Request) (notice, next string, err error) {
	topic, id, next, _ := names(r)
	do := d.q.Reschedule
	if dueq.State(r.PostFormValue("state")) == dueq.StateDead {
		do = d.q.RequeueEvent
	}
	err = do(r.Context(), topic, id, time.Now())
	return fmt.Sprintf("Event %s is due now.", id), next, err
}

func (d *dashboard) reschedule(r *http.Request) (notice, next string, err error) {
	topic, id, _, next := names(r)
	at, err := timeOf(r, "at")
	if err != nil {
		return "", "", err
	}
	if text := r.PostFormValue("in"); text != "" {
		if !at.IsZero() {
			return "", "", fmt.Errorf("%w: give a time from now, or a date, not both", errInput)
		}
		ahead, err := aheadOf(text, r.PostFormValue("unit"))
		if err != nil {
			return "", "", err
		}
		at = time.Now().Add(ahead)
	}
	if at.IsZero() {
		return "", "", fmt.Errorf("%w: no new time was given", errInput)
	}
	err = d.q.Reschedule(r.Context(), topic, id, at)
	return fmt.Sprintf("Event %s is due %s.", id, relative(at, time.Now())), next, err
}

// units are those of a time from now.
var units = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

func aheadOf(text, unit string) (time.Duration, error) {
	n, err := strconv.ParseFloat(text, 64)
	of, known := units[unit]
	if err != nil || !known || !(n >= 0 && n <= 36500*24*float64(time.Hour)/float64(of)) {
		return 0, fmt.Errorf("%w: %.80q %.80q from now is not a time up to 100 years", errInput, text, unit)
	}
	return time.Duration(n * float64(of)), nil
}

func (d *dashboard) cancel(r *http.Request) (notice, next string, err error) {
	topic, id, next, _ := names(r)
	return fmt.Sprintf("Event %s is cancelled.", id), next, d.q.Cancel(r.Context(), topic, id)
}

// requeue gives all dead events that a filter takes a new life.
func (d *dashboard) requeue(r *http.Request) (notice, next string, err error) {
	topic, _, next, _ := names(r)
	filter, err := filterOf(r)
	if err != nil {
		return "", "", err
	}
	n, err := d.q.Requeue(r.Context(), topic, filter, time.Now())
	if err != nil {
		return "", "", fmt.Errorf("requeued %s, then: %w", events(n), err)
	}
	return fmt.Sprintf("Requeued %s.", events(n)), next, nil
}

func (d *dashboard) purge(r *http.Request) (notice, next string, err error) {
	topic, _, next, _ := names(r)
	if typed := r.PostFormValue("typed"); typed != topic {
		return "", "", fmt.Errorf("%w: %.80q was typed to confirm the purge of topic %.80q", errInput, typed, topic)
	}
	var of []dueq.State
	if state := r.PostFormValue("state"); state != "" {
		of = append(of, dueq.State(state))
	}
	n, err := d.q.Purge(r.Context(), topic, of...)
	if err != nil {
		return "", "", fmt.Errorf("forgot %s, then: %w", events(n), err)
	}
	return fmt.Sprintf("Forgot %s.", events(n)), next, nil
}

func (d *dashboard) pause(r *http.Request) (notice, next string, err error) {
	topic, _, next, _ := names(r)
	return fmt.Sprintf("Topic %s is paused: its events wait.", topic), next, d.q.Pause(r.Context(), topic)
}

func (d *dashboard) resume(r *http.Request) (notice, next string, err error) {
	topic, _, next, _ := names(r)
	return fmt.Sprintf("Topic %s is delivered again.", topic), next, d.q.Resume(r.Context(), topic)
}

func events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return digits.Group(n) + " events"
}
