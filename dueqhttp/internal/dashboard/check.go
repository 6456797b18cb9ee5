package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
)

var errChecking = errors.New("a check is running already")

// checkData is the page of the audit.
type checkData struct {
	Topics   []string
	Topic    string         // that was looked at; "": all
	Reports  []*dueq.Report // nil: nothing was looked at
	Repaired bool
	Took     time.Duration
	Err      error // why it was not all looked at
	Repair   confirmation
}

// meanings say what kinds of findings are.
var meanings = map[dueq.FindingKind]string{
	dueq.FindingNoPlace:     "Events that lie nowhere: nobody would ever deliver them. A repair puts them among the dead.",
	dueq.FindingNoBody:      "Ids without a body. A repair forgets them.",
	dueq.FindingTwoPlaces:   "Events that lie in more than one place. A repair leaves them in one.",
	dueq.FindingWrongBucket: "Events in a bucket in which nobody would look. A repair moves them, with the same time.",
	dueq.FindingNoSession:   "Events that no session holds, so that nobody would give them back. A repair does.",
	dueq.FindingLeftover:    "Notes on attempts of events that are gone. A repair forgets them.",
}

// Meaning says what a kind of finding is.
func (c *checkData) Meaning(kind dueq.FindingKind) string { return meanings[kind] }

// Left is how many findings are not repaired.
func (c *checkData) Left() int {
	n := 0
	for _, r := range c.Reports {
		n += r.Left()
	}
	return n
}

// Found is how many findings there are, repaired or not.
func (c *checkData) Found() int {
	n := 0
	for _, r := range c.Reports {
		for _, f := range r.Findings {
			n += f.Count
		}
	}
	return n
}

// Events is how many events were looked at.
func (c *checkData) Events() int {
	n := 0
	for _, r := range c.Reports {
		n += r.Events
	}
	return n
}

func (d *dashboard) check(r *http.Request) (*page, error) {
	return d.audit(r, nil)
}

// runCheck looks whether all events lie where they should. It changes nothing.
func (d *dashboard) runCheck(r *http.Request) (*page, error) {
	return d.audit(r, d.q.Check)
}

func (d *dashboard) repair(r *http.Request) (*page, error) {
	if !r.PostForm.Has("topic") { // an empty one is given for all
		return nil, fmt.Errorf("%w: no topic was given", errInput)
	}
	p, err := d.audit(r, d.q.Repair)
	if err == nil {
		p.Data.(*checkData).Repaired = true
	}
	return p, err
}

// audit audits one topic or all, and shows what was found.
func (d *dashboard) audit(r *http.Request, do func(context.Context, string) (*dueq.Report, error)) (*page, error) {
	if do != nil {
		if !d.checking.TryLock() {
			return nil, errChecking
		}
		defer d.checking.Unlock()
	}
	topics, err := d.q.Topics(r.Context())
	if err != nil {
		return nil, err
	}
	data := &checkData{Topics: topics, Topic: r.FormValue("topic")}
	data.Repair = repairConfirmation(data.Topic)
	chosen := data.Topics
	if data.Topic != "" {
		chosen = []string{data.Topic}
	}
	began := time.Now()
	if do != nil {
		data.Reports, data.Err = census.Audit(r.Context(), d.q, chosen, do)
	}
	if data.Err != nil && data.Topic != "" && len(data.Reports) == 0 {
		return nil, data.Err
	}
	data.Took = time.Since(began)
	return &page{name: "check", Title: "Check", Nav: "check", Data: data}, nil
}
