package dashboard

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

// noticeCookie carries a word about what an action did to the next page.
const noticeCookie = "dueq_notice"

//go:embed templates
var templateFiles embed.FS

// templates are the pages by name, each within the frame that all share.
var templates = parseTemplates()

// page is what a template is rendered with.
type page struct {
	name string // of its template

	Title string
	Nav   string // the section that it belongs to; "": none
	Live  bool   // it is kept up to date while it is open
	Data  any

	Access    access.Level
	LoggedIn  bool
	Ephemeral bool
	Notice    string
	Now       time.Time
}

// MayChange reports whether the page may offer actions.
func (p *page) MayChange() bool { return p.Access == access.Full }

func parseTemplates() map[string]*template.Template {
	frame := template.Must(template.New("frame.html").Funcs(template.FuncMap{
		"asset": asset, "count": digits.Group, "rate": rate, "tick": tick, "span": span, "bytes": bytesOf,
		"stamp": stamp, "iso": envelope.Stamp, "input": inputTime, "relative": relative, "excerpt": excerpt, "link": with,
	}).ParseFS(templateFiles, "templates/frame.html", "templates/parts.html"))
	files, err := templateFiles.ReadDir("templates/pages")
	if err != nil {
		panic(err)
	}
	all := make(map[string]*template.Template)
	for _, f := range files {
		t := template.Must(template.Must(frame.Clone()).ParseFS(templateFiles, "templates/pages/"+f.Name()))
		all[f.Name()[:len(f.Name())-len(".html")]] = t
	}
	return all
}

// page serves what view returns, to those who have at least the access needed:
// once, or to a browser that asks for events again and again.
func (d *dashboard) page(needed access.Level, view func(*http.Request) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !d.admit(w, r, needed) {
			return
		}
		if r.Method == http.MethodGet && r.Header.Get("Accept") == eventStream && needed > access.None {
			d.stream(w, r, view)
			return
		}
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				d.fail(w, r, fmt.Errorf("%w: %w", errInput, err))
				return
			}
			takeYourTime(w)
		}
		p, err := view(r)
		if err != nil {
			d.fail(w, r, err)
			return
		}
		d.render(w, r, http.StatusOK, p)
	}
}

// admit answers requests that have less than the access needed.
func (d *dashboard) admit(w http.ResponseWriter, r *http.Request, needed access.Level) bool {
	has := d.opts.Tokens.Level(r)
	switch {
	case has >= needed:
		return true
	case has > access.None:
		d.fail(w, r, errReadOnly)
	case r.Method == http.MethodGet && r.Header.Get("Accept") != eventStream:
		redirect(w, "login")
	default:
		d.fail(w, r, errNoToken)
	}
	return false
}

// render answers with a page.
func (d *dashboard) render(w http.ResponseWriter, r *http.Request, status int, p *page) {
	if notice, err := r.Cookie(noticeCookie); err == nil && r.Method == http.MethodGet {
		p.Notice, _ = url.QueryUnescape(notice.Value)
		http.SetCookie(w, &http.Cookie{Name: noticeCookie, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	text, err := d.execute(r, "frame.html", p)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept, Cookie, Authorization")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// execute renders one template of a page: all of it, or its main part.
func (d *dashboard) execute(r *http.Request, name string, p *page) ([]byte, error) {
	_, err := r.Cookie(access.Cookie)
	p.LoggedIn = err == nil
	p.Access, p.Ephemeral, p.Now = d.opts.Tokens.Level(r), d.opts.Ephemeral, time.Now()
	var text bytes.Buffer
	if err := templates[p.name].ExecuteTemplate(&text, name, p); err != nil {
		return nil, fmt.Errorf("render page %q: %w", p.name, err)
	}
	return text.Bytes(), nil
}

// fail answers with a page about an error.
func (d *dashboard) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, status := trouble(r, err)
	d.render(w, r, status, p)
}

// with is a relative link to a page with query parameters, given as pairs; those
// that are empty are left out.
func with(to string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return to
	}
	return to + "?" + query.Encode()
}

// safeBack is a link back to one of the dashboard's own pages, or else otherwise.
func safeBack(link, otherwise string) string {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Fragment != "" && u.Fragment != "events" {
		return otherwise
	}
	switch u.Path {
	case "topic", "event":
		return link
	}
	return otherwise
}
