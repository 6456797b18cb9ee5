package dueqhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// readyTimeout is how long Redis has to answer for the service to be ready.
const readyTimeout = 2 * time.Second

// health is what /healthz and /readyz answer.
type health struct {
	Status    string `json:"status"`    // "ok", "draining" or "redis down"
	Ephemeral bool   `json:"ephemeral"` // Redis is embedded and keeps nothing
}

// healthz says that the process serves requests.
func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request) {
	h.writeHealth(w, http.StatusOK, "ok")
}

// readyz says whether requests should be sent here: Redis answers, and the
// service is not about to end.
func (h *Handler) readyz(w http.ResponseWriter, r *http.Request) {
	if h.draining.Err() != nil {
		h.writeHealth(w, http.StatusServiceUnavailable, "draining")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	// Counting a topic that nobody uses is one call that changes nothing.
	if _, err := h.q.Stats(ctx, "readyz"); err != nil {
		h.opts.Logger.Warn("not ready", zap.Error(err))
		h.writeHealth(w, http.StatusServiceUnavailable, "redis down")
		return
	}
	h.writeHealth(w, http.StatusOK, "ok")
}

func (h *Handler) writeHealth(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(health{Status: text, Ephemeral: h.opts.Ephemeral}) // an error is the client's going
}
