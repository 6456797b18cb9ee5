package deploy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/redistest"
)

// The manifests hold only fields that Kubernetes knows, and fit together.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	var deployment appsv1.Deployment
	var service corev1.Service
	var budget policyv1.PodDisruptionBudget
	documents := regexp.MustCompile(`(?m)^---$`).Split(read(t, "kubernetes.yaml"), -1)
	into := []any{&deployment, &service, &budget}
	if len(documents) != len(into) {
		t.Fatalf("%d documents, want %d", len(documents), len(into))
	}
	for i, object := range into {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), object); err != nil {
			t.Errorf("document %d is no %T: %v", i, object, err)
		}
	}
	if deployment.Kind != "Deployment" || deployment.APIVersion != "apps/v1" || service.Kind != "Service" || service.APIVersion != "v1" ||
		budget.Kind != "PodDisruptionBudget" || budget.APIVersion != "policy/v1" {
		t.Errorf("kinds %v, %v, %v", deployment.TypeMeta, service.TypeMeta, budget.TypeMeta)
	}
	labels := deployment.Spec.Template.Labels
	for name, selector := range map[string]map[string]string{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels,
	} {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("the %s selects %s=%s, pods have %v", name, key, value, labels)
			}
		}
	}
	if *deployment.Spec.Replicas > 1 && service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		t.Error("a claim and its ack may reach different pods")
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.HTTPGet.Port.String() }) {
			t.Errorf("a probe asks port %v, there are %v", p.HTTPGet.Port, c.Ports)
		}
		if status := ask(t, p.HTTPGet.Path); status != http.StatusOK {
			t.Errorf("%s answers %d", p.HTTPGet.Path, status)
		}
	}
	sc := c.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem || len(sc.Capabilities.Drop) == 0 {
		t.Errorf("security contexts %+v, %+v", pod.SecurityContext, sc)
	}
	if rest := *pod.TerminationGracePeriodSeconds - c.Lifecycle.PreStop.Sleep.Seconds; rest <= 30 {
		t.Errorf("%d s to drain after preStop, Options.ShutdownTimeout is 30 s", rest)
	}
}

// ask asks a service for a path, without a token.
func ask(t *testing.T, path string) (status int) {
	t.Helper()
	env := redistest.Mini(t)
	q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.ShutDown(context.Background()) }) // it has nothing to end
	h, err := dueqhttp.New(q, dueqhttp.Options{Tokens: []string{"0123456789abcdef"}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://10.0.0.7:7700"+path, nil))
	return w.Code
}
