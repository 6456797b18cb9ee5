package envelope

import "github.com/dueq-io/dueq"

// Delivery is one delivery of an event.
type Delivery struct {
	ID          string            `json:"id"`
	Topic       string            `json:"topic"`
	EffectTime  string            `json:"effect_time"`
	Attempt     int               `json:"attempt"`
	MaxAttempts int               `json:"max_attempts"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Body
}

// NewDelivery is the delivery in JSON; exact has its body in base64 whatever it is.
func NewDelivery(e *dueq.Event, exact bool) Delivery {
	d := Delivery{
		ID: e.ID, Topic: e.Topic, EffectTime: Stamp(e.EffectTime),
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts, Metadata: e.Metadata,
	}
	if exact {
		d.Base64 = e.Body
	} else {
		d.Body = NewBody(e.Body)
	}
	return d
}
