package deploy_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqprom"
	"github.com/dueq-io/dueq/internal/redistest"
)

// exported are the names of all series that a collector exports, and of the
// metrics to which they belong.
func exported(t *testing.T) map[string]string {
	t.Helper()
	env := redistest.Mini(t)
	q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.ShutDown(context.Background()) }) // it has nothing to end
	if _, err := q.PublishEvent(t.Context(), "a", nil, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(dueqprom.NewCollector(q, dueqprom.Options{Depths: true}))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := make(map[string]string)
	for _, f := range families {
		if f.GetType() == dto.MetricType_HISTOGRAM {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				series[f.GetName()+suffix] = f.GetName()
			}
			continue
		}
		series[f.GetName()] = f.GetName()
	}
	return series
}

var metricName = regexp.MustCompile(`\bdueq_\w+`)

// Every metric that a file speaks of is exported.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	series := exported(t)
	for _, name := range []string{"alerts.yml", "alerts_test.yml", "grafana.json"} {
		found := metricName.FindAllString(read(t, name), -1)
		if len(found) == 0 {
			t.Errorf("%s speaks of no metric", name)
		}
		for _, metric := range found {
			if series[metric] == "" && metric != "dueq_read_token" {
				t.Errorf("%s speaks of %s, which is not exported", name, metric)
			}
		}
	}
}

// The page for operators lists every metric, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	metrics := make(map[string]bool)
	for _, metric := range exported(t) {
		metrics[metric] = true
	}
	documented := make(map[string]bool)
	for line := range strings.Lines(read(t, "../docs/operating.md")) {
		if strings.HasPrefix(line, "| `dueq_") {
			documented[metricName.FindString(line)] = true
		}
	}
	want, got := slices.Sorted(maps.Keys(metrics)), slices.Sorted(maps.Keys(documented))
	if !slices.Equal(got, want) {
		t.Errorf("documented are\n%v, exported are\n%v", got, want)
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
	promtool(t, "check", "config", "--syntax-only", "prometheus.yml")
	alert := regexp.MustCompile(`alert(?:name)?: (\w+)`)
	names := func(file string) (names []string) {
		for _, m := range alert.FindAllStringSubmatch(read(t, file), -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	rules := names("alerts.yml")
	if tested := names("alerts_test.yml"); !slices.Equal(rules, tested) {
		t.Errorf("there are alerts %v, and tests of %v", rules, tested)
	}
	page := read(t, "../docs/operating.md")
	for _, name := range rules {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/operating.md does not say what to do at %s", name)
		}
	}
}
