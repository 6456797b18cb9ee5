package deploy_test

import (
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// The file follows the specification of Compose, what it mounts exists, and
// nothing is reached from other machines.
func TestCompose(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{"compose.yaml"},
		cli.WithEnv([]string{"DUEQ_TOKEN=0123456789abcdef", "DUEQ_READ_TOKEN=fedcba9876543210"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"redis", "dueq", "prometheus", "grafana"} {
		if _, ok := project.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	for name, s := range project.Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes port %s on %q", name, p.Published, p.HostIP)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s mounts %s, read-only %v: %v", name, v.Source, v.ReadOnly, err)
			}
		}
	}
}
