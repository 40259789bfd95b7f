package chart_test

import (
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// behindGateways are the examples that say to install the chart: folder, name of the release
// and the manifests that have the address of its Service.
var behindGateways = []struct {
	folder, release string
	manifests       []string
}{
	{"istio", "ratelimit", []string{"requests.yaml", "tokens.yaml"}},
	{"envoy-gateway", "edge", []string{"policy.yaml"}},
}

// The commands of the examples install one pod, at the address that the manifests have.
func TestExamplesBehindGateways(t *testing.T) {
	for _, example := range behindGateways {
		t.Run(example.folder, func(t *testing.T) {
			folder := filepath.Join("..", "..", "examples", example.folder)
			v := values{
				"image":       values{"repository": "registry.example.com/ratelimit", "tag": "VERSION"},
				"config":      readFile(t, folder, "ratelimit.yaml"),
				"persistence": values{"enabled": true},
			}
			documents, _, err := renderAs(example.release, load(t), v)
			if err != nil {
				t.Fatal(err)
			}
			objects := decoded(t, documents)
			wantInOrder(t, configFiles(t, objects))
			service := onlyService(t, objects)
			for _, manifest := range example.manifests {
				want := "{address: " + service + ".ratelimit.svc.cluster.local, port_value: 8081}"
				if !strings.Contains(readFile(t, folder, manifest), want) {
					t.Errorf("%s: has no %s", manifest, want)
				}
			}
		})
	}
}

// Two pods with buckets of their own would double each limit of the examples: the chart refuses.
func TestExamplesAreNotDoubled(t *testing.T) {
	for _, example := range behindGateways {
		v := values{
			"image":    values{"repository": "registry.example.com/ratelimit", "tag": "VERSION"},
			"config":   readFile(t, "..", "..", "examples", example.folder, "ratelimit.yaml"),
			"replicas": 2,
		}
		_, _, err := renderAs(example.release, load(t), v)
		if err == nil || !strings.Contains(err.Error(), "each replica would give every limit once more") {
			t.Errorf("%s with two pods in memory: %v", example.folder, err)
		}
	}
}

// onlyService returns the name of the headless Service of a single pod.
func onlyService(t *testing.T, objects map[string]any) string {
	t.Helper()
	var name string
	for _, object := range objects {
		switch o := object.(type) {
		case *core.Service:
			if o.Spec.ClusterIP == core.ClusterIPNone {
				name = o.Name
			}
		case *apps.StatefulSet:
			if *o.Spec.Replicas != 1 {
				t.Errorf("pods: %d, want 1", *o.Spec.Replicas)
			}
		}
	}
	if name == "" {
		t.Error("no headless Service")
	}
	return name
}
