package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// nothing is what a table shows of a system that cannot do a scenario.
const nothing = "–"

// machine is what it was measured on.
type machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
}

func thisMachine() machine {
	m := machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil { // not a Linux
		return m
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// described is a system as it is printed.
type described struct {
	Name     string   `json:"name"`
	Settings string   `json:"settings"`
	Modules  []string `json:"modules"`           // with versions
	Server   string   `json:"server,omitempty"`  // with version
	Missing  string   `json:"missing,omitempty"` // why it was not measured
}

func (c *comparison) describe(s system) described {
	d := described{Name: s.name, Settings: s.settings, Server: c.servers[s.name], Missing: c.missing[s.name]}
	for _, m := range s.modules {
		d.Modules = append(d.Modules, m[strings.Index(m, "/")+1:]+" "+moduleVersion(m))
	}
	return d
}

// moduleVersion is the version of a module in this program.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range info.Deps {
		if m.Path != path {
			continue
		}
		if m.Replace != nil { // by the folder that this program is in
			return "(this tree)"
		}
		return m.Version
	}
	return "(unknown)"
}

// measured is a figure of one system as JSON has it.
type measured struct {
	Scenario string    `json:"scenario"`
	System   string    `json:"system"`
	Figure   string    `json:"figure"`
	Unit     string    `json:"unit,omitempty"`
	Median   float64   `json:"median"`
	Ahead    float64   `json:"dueq_ahead,omitempty"` // by what factor dueq is better
	Rounds   []float64 `json:"rounds"`
	Of       string    `json:"of,omitempty"` // what has the value in the last round
}

func (c *comparison) print(w io.Writer) error {
	var err error
	if c.json {
		err = c.printJSON(w)
	} else {
		err = c.printText(w)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (c *comparison) printJSON(w io.Writer) error {
	report := struct {
		Machine machine     `json:"machine"`
		Rounds  int         `json:"rounds"`
		Systems []described `json:"systems"`
		Figures []measured  `json:"figures"`
	}{thisMachine(), c.rounds, nil, []measured{}}
	for _, s := range c.systems {
		report.Systems = append(report.Systems, c.describe(s))
	}
	for _, sc := range c.scenarios {
		for _, f := range sc.figures {
			for _, s := range c.systems {
				values := c.values(sc.name, s.name, f.name)
				if len(values) == 0 {
					continue
				}
				m := measured{
					Scenario: sc.name, System: s.name, Figure: f.name, Unit: f.unit,
					Median: median(values), Ahead: c.ahead(sc.name, s.name, f), Rounds: values,
				}
				if f.name == slowestName {
					m.Of = c.worst(sc.name, s.name)
				}
				report.Figures = append(report.Figures, m)
			}
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(report)
}

func (c *comparison) printText(w io.Writer) error {
	var b bytes.Buffer
	m := thisMachine()
	fmt.Fprintf(&b, "%d × %s, %s, %s; rounds: %d, figures: medians\n\n", m.Cores, m.CPU, m.OS, m.Go, c.rounds)
	err := c.printSystems(&b)
	fmt.Fprintln(&b)
	err = errors.Join(err, c.printFigures(&b))
	fmt.Fprint(&b, c.notes())
	_, writeErr := b.WriteTo(w)
	return errors.Join(err, writeErr)
}

func (c *comparison) printSystems(w io.Writer) error {
	lines := [][]string{{"system", "server", "modules and settings"}}
	for _, s := range c.systems {
		d := c.describe(s)
		what := strings.Join(d.Modules, ", ") + ": " + d.Settings
		if d.Missing != "" {
			what = "not measured: " + d.Missing
		}
		server := d.Server
		if server == "" {
			server = nothing
		}
		lines = append(lines, []string{d.Name, server, what})
	}
	return measure.PrintTable(w, lines)
}

// printFigures prints a line per figure and a column per system.
func (c *comparison) printFigures(w io.Writer) error {
	head := []string{"scenario", "figure"}
	for _, s := range c.systems {
		head = append(head, s.name)
	}
	lines := [][]string{append(head, "unit")}
	for _, sc := range c.scenarios {
		for _, f := range sc.figures {
			line := []string{sc.name, f.name}
			for _, s := range c.systems {
				line = append(line, c.cell(sc.name, s.name, f))
			}
			lines = append(lines, append(line, f.unit))
		}
	}
	return measure.PrintTable(w, lines)
}

func (c *comparison) cell(scenario, system string, f figure) string {
	values := c.values(scenario, system, f.name)
	if len(values) == 0 {
		return nothing
	}
	text := f.show(median(values))
	if a := c.ahead(scenario, system, f); a != 0 {
		text += fmt.Sprintf(" (%s×)", factor(a))
	}
	return text
}

// show prints a value; 0 is 0.
func (f figure) show(v float64) string {
	if v == 0 || f.unit == "" && f.good == neither {
		return digits.Group(int(v))
	}
	return measure.Human(v)
}

// factor shows two digits.
func factor(v float64) string {
	switch {
	case v >= 10:
		return digits.Group(int(v + 0.5))
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// notes name the slowest commands.
func (c *comparison) notes() string {
	var b strings.Builder
	for _, sc := range c.scenarios {
		var notes []string
		for _, s := range c.systems {
			if worst := c.worst(sc.name, s.name); worst != "" {
				notes = append(notes, s.name+": "+worst)
			}
		}
		if len(notes) > 0 {
			fmt.Fprintf(&b, "\nslowest command of %s: %s\n", sc.name, strings.Join(notes, ", "))
		}
	}
	return b.String()
}

// worst is the slowest command of the last round.
func (c *comparison) worst(scenario, system string) string {
	worst := ""
	for _, out := range c.outcomes[[2]string{scenario, system}] {
		worst = out.Worst
	}
	return worst
}
