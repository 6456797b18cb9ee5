package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// answer sends a value as JSON.
func answer(w http.ResponseWriter, status int, value any) error {
	err := send(w, status, value)
	if errors.Is(err, errNotSent) {
		return nil // the client went away
	}
	return err
}

var errNotSent = errors.New("the answer cannot be sent")

// send is [answer] for what has to arrive: its error wraps errNotSent if it is
// known that it did not.
func send(w http.ResponseWriter, status int, value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err = w.Write(data)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	return nil
}

// done answers that it is done, and nothing else.
func done(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// encode is a value as a line of JSON, in which bodies look as they are.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false) // it is served as JSON and not to be sniffed
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("dueqhttp: encode the answer: %w", err)
	}
	return buf.Bytes(), nil
}
