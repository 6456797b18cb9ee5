package dashboard

import (
	"fmt"
	"net/http"

	"github.com/dueq-io/dueq"
)

// confirmation asks whether to do what cannot be undone.
type confirmation struct {
	Do      string // the action's path
	Title   string
	Text    string
	Button  string
	Danger  bool
	Typed   string   // what has to be typed; "": nothing
	Choices []choice // of a state; nil: none
	Fields  map[string]string
	Back    string // link to the page that asks
}

type choice struct {
	Value, Text string
	Is          bool // that which is proposed
}

// Link is the page that asks, for browsers without JavaScript.
func (c confirmation) Link() string {
	pairs := []string{"do", c.Do}
	for name, value := range c.Fields {
		pairs = append(pairs, name, value)
	}
	return with("confirm", pairs...)
}

func purgeConfirmation(topic string, state dueq.State) confirmation {
	return confirmation{
		Do: "purge", Title: "Purge topic " + topic + "?", Button: "Purge", Danger: true, Typed: topic,
		Text: "Its events are forgotten, with their bodies. Those that a handler has stay. This cannot be undone.",
		Choices: []choice{
			{"", "all: scheduled, ready and dead", false},
			{"scheduled", "scheduled events", false},
			{"ready", "ready events", false},
			{"dead", "dead events", state == dueq.StateDead},
		},
		Fields: map[string]string{"topic": topic}, Back: with("topic", "topic", topic),
	}
}

func cancelConfirmation(topic, id string) confirmation {
	return confirmation{
		Do: "cancel", Title: "Cancel event " + id + "?", Button: "Cancel the event", Danger: true,
		Text:   "It is forgotten with its body, and no handler will get it. This cannot be undone.",
		Fields: map[string]string{"topic": topic, "id": id}, Back: with("event", "topic", topic, "id", id),
	}
}

func requeueConfirmation(l *eventList) confirmation {
	c := confirmation{
		Do: "requeue", Title: "Requeue dead events of " + l.Topic + "?", Button: "Requeue",
		Text: "All of them become due now, and start with all their attempts.",
		Fields: map[string]string{
			"topic": l.Topic, "state": string(dueq.StateDead), "prefix": l.Filter.IDPrefix, "error": l.Filter.Error,
			"since": inputTime(l.Filter.Since), "until": inputTime(l.Filter.Until),
		},
		Back: l.link("cursor", ""),
	}
	if l.Filtered() {
		c.Text = "Those that the filter takes become due now, and start with all their attempts."
	}
	return c
}

func repairConfirmation(topic string) confirmation {
	c := confirmation{
		Do: "repair", Title: "Repair all topics?", Button: "Repair",
		Text:   "Every event with a finding is put where it belongs, while the topic may be in use. No event that has a body is forgotten.",
		Fields: map[string]string{"topic": topic}, Back: "check",
	}
	if topic != "" {
		c.Title = "Repair topic " + topic + "?"
	}
	return c
}

// confirm asks on a page of its own.
func (d *dashboard) confirm(r *http.Request) (*page, error) {
	topic := r.FormValue("topic")
	var c confirmation
	switch do := r.FormValue("do"); do {
	case "purge":
		c = purgeConfirmation(topic, "")
	case "cancel":
		c = cancelConfirmation(topic, r.FormValue("id"))
	case "repair":
		c = repairConfirmation(topic)
	case "requeue":
		l, err := newEventList(r)
		if err != nil {
			return nil, err
		}
		c = requeueConfirmation(l)
	default:
		return nil, fmt.Errorf("%w: there is no action %.80q to confirm", errInput, do)
	}
	return &page{name: "confirm", Title: c.Title, Data: c}, nil
}
