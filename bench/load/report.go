package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// compare says how far a row is from what raw commands reach.
func compare(r, raw measure.Row) []measure.Figure {
	return []measure.Figure{
		{Name: "of raw's events/s", Value: 100 * measure.Ratio(r.PerSecond, raw.PerSecond), Unit: "%"},
		{Name: "of raw's Redis µs", Value: measure.Ratio(r.Redis, raw.Redis), Unit: "×"},
	}
}

// checkRows returns an error if an event was early.
func checkRows(rows []measure.Row) error {
	for _, r := range rows {
		if r.Lateness != nil && r.Lateness.Early > 0 {
			return fmt.Errorf("%s: %d events were handled before their time", r.Variant, r.Lateness.Early)
		}
	}
	return nil
}

// report prints the rows and writes the charts.
func (e *env) report(w io.Writer) error {
	var errs []error
	if e.json {
		errs = append(errs, e.printJSON(w))
	} else {
		errs = append(errs, measure.PrintRows(w, e.rows))
	}
	if e.svg != "" && len(e.charts) > 0 {
		errs = append(errs, os.MkdirAll(e.svg, 0o755))
		for _, c := range e.charts {
			errs = append(errs, os.WriteFile(filepath.Join(e.svg, c.name+".svg"), c.svg(), 0o644))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (e *env) printJSON(w io.Writer) error {
	rows := e.rows
	if rows == nil {
		rows = []measure.Row{}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Redis string        `json:"redis"` // version
		Go    string        `json:"go"`
		OS    string        `json:"os"`
		CPUs  int           `json:"cpus"`
		Rows  []measure.Row `json:"rows"`
	}{e.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), rows})
}
