package dashboard

import (
	"net/http"

	"github.com/dueq-io/dueq"
)

// sessionsData is the page of the processes that subscribe.
type sessionsData struct {
	Sessions []dueq.Session
	Held     int // events, by all of them
}

func (d *dashboard) sessions(r *http.Request) (*page, error) {
	sessions, err := d.q.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	data := sessionsData{Sessions: sessions}
	for _, s := range sessions {
		data.Held += s.Held
	}
	return &page{name: "sessions", Title: "Sessions", Nav: "sessions", Live: true, Data: data}, nil
}
