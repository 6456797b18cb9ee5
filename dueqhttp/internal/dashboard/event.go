package dashboard

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
)

// eventData is the page of one event.
type eventData struct {
	*dueq.EventInfo
	View   bodyView
	Cancel confirmation
	Soon   time.Time // what the form to reschedule proposes
}

func (d *dashboard) event(r *http.Request) (*page, error) {
	info, err := d.q.Get(r.Context(), r.FormValue("topic"), r.FormValue("id"))
	if err != nil {
		return nil, err
	}
	data := &eventData{
		EventInfo: info,
		View:      newBodyView(info.Body, r.FormValue("view")),
		Cancel:    cancelConfirmation(info.Topic, info.ID),
		Soon:      time.Now().Add(time.Hour).Truncate(time.Minute),
	}
	return &page{name: "event", Title: info.ID, Nav: "topics", Live: true, Data: data}, nil
}

// Free reports whether the event can be changed: nobody is handling it.
func (e *eventData) Free() bool { return e.State != dueq.StateLeased }

// Is reports whether the event is in a state.
func (e *eventData) Is(state string) bool { return string(e.State) == state }

// ViewAs is a link to the same page with another view of the body.
func (e *eventData) ViewAs(kind string) string {
	return with("event", "topic", e.Topic, "id", e.ID, "view", kind) + "#body"
}

// body sends an event's whole body as a file.
func (d *dashboard) body(w http.ResponseWriter, r *http.Request) {
	if !d.admit(w, r, access.Read) {
		return
	}
	info, err := d.q.Get(r.Context(), r.FormValue("topic"), r.FormValue("id"))
	if err != nil {
		d.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(info.Body)))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(info.ID)}))
	_, _ = w.Write(info.Body)
}

// fileName makes a file's name of an id.
func fileName(id string) string {
	name := strings.Map(func(c rune) rune {
		if c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_') {
			return c
		}
		return '_'
	}, id)
	return name[:min(len(name), 100)] + ".bin"
}
