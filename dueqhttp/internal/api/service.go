package api

import (
	_ "embed"
	"net/http"
	"net/url"

	"github.com/dueq-io/dueq/dueqhttp/internal/access"
)

//go:embed openapi.json
var document []byte

// Push is a topic whose events are forwarded to a URL.
type Push struct {
	Topic       string  `json:"topic"`
	URL         string  `json:"url"` // without user, password and query; for those who may only read, without the path, too
	Concurrency int     `json:"concurrency"`
	Timeout     float64 `json:"timeout_seconds"`
	Signed      bool    `json:"signed"`
}

// service tells what serves here.
type service struct {
	Service   string `json:"service"`
	Ephemeral bool   `json:"ephemeral"` // Redis is embedded and keeps nothing
	Draining  bool   `json:"draining"`
	Access    string `json:"access"` // of the caller: full or read
}

// service tells what serves here, and what the caller may do.
func (a *API) service(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	return answer(w, http.StatusOK, service{
		Service: "dueq", Ephemeral: a.opts.Ephemeral, Draining: a.opts.Draining.Err() != nil,
		Access: a.opts.Tokens.Level(r).String(),
	})
}

// document serves the OpenAPI document.
func (a *API) document(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // an error is the client's going
	return nil
}

// pushList are the topics that are forwarded.
type pushList struct {
	Push []Push `json:"push"`
}

// push lists the topics that are forwarded to URLs. A path may be as good as a
// password: many services' webhooks have their secret there.
func (a *API) push(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	list := pushList{Push: append([]Push{}, a.opts.Push...)}
	if a.opts.Tokens.Level(r) < access.Full {
		for i, p := range list.Push {
			list.Push[i].URL = siteOf(p.URL)
		}
	}
	return answer(w, http.StatusOK, list)
}

// siteOf is a URL without its path.
func siteOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
