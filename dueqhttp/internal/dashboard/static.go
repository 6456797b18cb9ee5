package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
)

//go:embed static
var staticFiles embed.FS

// types are those of the files that browsers get as they are.
var types = map[string]string{
	"app.css":  "text/css; charset=utf-8",
	"app.js":   "text/javascript; charset=utf-8",
	"icon.svg": "image/svg+xml",
}

// asset is a link to a file, a new one whenever the file has changed.
func asset(name string) (string, error) {
	text, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return with("static/"+name, "v", hex.EncodeToString(sum[:6])), nil
}

func static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	if r.URL.Query().Has("v") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(text)
}
