package dueqhttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dueq-io/dueq"
)

const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"

	minSecret = 16 // bytes
)

// ErrSignature says that a request was not signed with this secret, or too long ago.
var ErrSignature = errors.New("dueqhttp: bad signature")

// signingKey is the key that a secret stands for.
func signingKey(secret string) ([]byte, error) {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("what follows whsec_ is not base64")
		}
	}
	if len(key) < minSecret {
		return nil, fmt.Errorf("%d bytes, not at least %d", len(key), minSecret)
	}
	return key, nil
}

// sign adds the headers that [Verify] reads.
func sign(key []byte, h http.Header, e *dueq.Event, now time.Time) {
	id := strings.ReplaceAll(escape(e.ID, isVisible), ".", "%2E") + "@" + strconv.FormatInt(e.EffectTime.UnixMilli(), 10)
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(signature(key, id, timestamp, e.Body)))
}

func signature(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify is for receivers: it checks that a request that [Forward] has signed with
// this secret says so, no longer than tolerance ago (5 minutes are usual). Its
// error wraps [ErrSignature]. The body must be the bytes that came, all of them.
//
// The signature is that of https://www.standardwebhooks.com, for which there are
// libraries in many languages. By hand, it is verified like this:
//
//   - Refuse the request if Webhook-Timestamp (seconds since 1970) is more than the
//     tolerance from now.
//   - Join Webhook-Id, Webhook-Timestamp and the raw body with full stops:
//     "id.timestamp.body".
//   - Compute the HMAC-SHA256 of that, in base64. The key is the secret; of one that
//     begins with "whsec_", what follows, decoded from base64.
//   - Compare it, in constant time, with what follows "v1," in Webhook-Signature; of
//     several, which a space separates, one must be equal.
//   - Within the tolerance the same request may come again, as a retry or from
//     somebody who has overheard it: remember the Webhook-Ids of that time, and
//     answer 200 to one that has been seen to. An id that is published anew has
//     another Webhook-Id.
//
// Only the body and these headers are signed. Webhook-Id is Dueq-Id (with "%2E" for
// its full stops), "@", and the effect time in milliseconds since 1970.
func Verify(secret string, h http.Header, body []byte, tolerance time.Duration) error {
	key, err := signingKey(secret)
	if err != nil {
		return fmt.Errorf("%w: secret: %w", ErrSignature, err)
	}
	id, timestamp := h.Get(headerID), h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || strings.Contains(id, ".") { // that would make the join ambiguous
		return fmt.Errorf("%w: no valid %s and %s", ErrSignature, headerID, headerTimestamp)
	}
	want := signature(key, id, timestamp, body)
	for given := range strings.FieldsSeq(h.Get(headerSignature)) {
		encoded, ok := strings.CutPrefix(given, "v1,")
		if !ok {
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(encoded); err != nil || !hmac.Equal(got, want) {
			continue
		}
		if age := time.Since(time.Unix(seconds, 0)).Abs(); age > tolerance {
			return fmt.Errorf("%w: signed %v from now, more than %v", ErrSignature, age.Round(time.Second), tolerance)
		}
		return nil
	}
	return fmt.Errorf("%w: no %s that fits", ErrSignature, headerSignature)
}
