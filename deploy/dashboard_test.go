package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type datasource struct{ Type, UID string }

// dashboard is what matters of Grafana's dashboard JSON.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
			Datasource datasource
		}
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               datasource
	Targets                  []struct {
		RefID, Expr string
		Datasource  datasource
	}
}

// Panels have places of their own, and queries that Prometheus understands.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
		t.Errorf("uid %q, title %q, schema version %d", d.UID, d.Title, d.SchemaVersion)
	}
	want := datasource{"prometheus", "${datasource}"}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type == "query" && v.Datasource != want {
			t.Errorf("variable %s asks %v", v.Name, v.Datasource)
		}
	}
	if !variables["datasource"] {
		t.Errorf("the data source is no variable")
	}
	ids := make(map[int]bool)
	cells := make(map[[2]int]string)
	var exprs []string
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d, %q: no id or title of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q does not fit beside %q", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource != want || len(p.Targets) == 0 {
			t.Errorf("panel %q: description %q, data source %v, %d targets", p.Title, p.Description, p.Datasource, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Datasource != want {
				t.Errorf("panel %q: target %q asks %v", p.Title, target.RefID, target.Datasource)
			}
			exprs = append(exprs, resolve(t, target.Expr, variables))
		}
	}
	checkExprs(t, exprs)
}

// resolve puts values in the place of variables, each of which must be known.
func resolve(t *testing.T, expr string, variables map[string]bool) string {
	t.Helper()
	return os.Expand(expr, func(name string) string {
		if !variables[name] {
			t.Errorf("unknown variable %s in %s", name, expr)
		}
		if name == "__rate_interval" {
			return "5m"
		}
		return ".*"
	})
}

// checkExprs has Prometheus parse expressions.
func checkExprs(t *testing.T, exprs []string) {
	t.Helper()
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for i, e := range exprs {
		rules = append(rules, rule{fmt.Sprint("panel:", i), e})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// Grafana finds the data source and the dashboard where compose.yaml puts them.
func TestProvisioning(t *testing.T) {
	t.Parallel()
	for name, needle := range map[string]string{
		"grafana-datasource.yml": "http://prometheus:9090",
		"grafana-dashboards.yml": "/var/lib/dueq",
		"compose.yaml":           "./grafana.json:/var/lib/dueq/grafana.json:ro",
	} {
		var any map[string]any
		text := read(t, name)
		if err := yaml.UnmarshalStrict([]byte(text), &any); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(text, needle) {
			t.Errorf("%s does not speak of %s", name, needle)
		}
	}
}
