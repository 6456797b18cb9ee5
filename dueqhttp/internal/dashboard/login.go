package dashboard

import (
	"net/http"
	"strings"

	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

type loginData struct {
	Refused bool // the token that was given allows nothing
}

func (d *dashboard) login(*http.Request) (*page, error) {
	return &page{name: "login", Title: "Log in", Data: loginData{}}, nil
}

// logIn keeps the token in a cookie of the folder in which the dashboard is
// mounted, if it allows anything.
func (d *dashboard) logIn(w http.ResponseWriter, r *http.Request) {
	token := r.PostFormValue("token")
	cookie := &http.Cookie{
		Name: access.Cookie, Value: token,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isTLS(r),
	}
	if d.opts.Tokens.Of(token) == access.None || cookie.Valid() != nil {
		d.render(w, r, http.StatusUnauthorized, &page{name: "login", Title: "Log in", Data: loginData{Refused: true}})
		return
	}
	http.SetCookie(w, cookie)
	redirect(w, "./")
}

func (d *dashboard) logOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: access.Cookie, MaxAge: -1,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isTLS(r),
	})
	redirect(w, "login")
}

// nowhere answers people with a page, and programs with a problem.
func (d *dashboard) nowhere(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		problem.NoRoute.New("the API is under /v1; /v1/openapi.json describes it").Write(w)
		return
	}
	d.fail(w, r, errNowhere)
}

// isTLS reports whether the browser speaks TLS, be it with a proxy.
func isTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// redirect makes the browser get another page. [http.Redirect] would make the
// link absolute, and without the prefix that the handler is mounted under.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
