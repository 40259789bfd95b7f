package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// aggregating returns the objects that a mode has with an aggregator, and has not without one.
func aggregating(t *testing.T, mode string, v values) map[string]any {
	t.Helper()
	before := rendered(t, modes(t)[mode])
	v["enabled"] = true
	added := rendered(t, with(modes(t)[mode], "aggregator", v))
	maps.DeleteFunc(added, func(name string, _ any) bool { return before[name] != nil })
	return added
}

// A fleet with an aggregator has a Deployment of it. The selectors of its pods match no
// other pods.
func TestAggregator(t *testing.T) {
	for mode, want := range map[string]string{"fleet": "Deployment Service", "fleet-full": "Deployment NetworkPolicy Service ServiceMonitor"} {
		added := aggregating(t, mode, values{})
		if got := kinds(added); got != want {
			t.Errorf("%s: got %s, want %s", mode, got, want)
		}
		labels := pod(t, added).Labels
		for object, selector := range selectors(added) {
			for key, value := range selector {
				if labels[key] != value {
					t.Errorf("%s: %s selects %s=%s, and pods have %v", mode, object, key, value, labels)
				}
			}
		}
		for object, selector := range selectors(rendered(t, modes(t)[mode])) {
			if selector["app.kubernetes.io/name"] == labels["app.kubernetes.io/name"] {
				t.Errorf("%s: %s selects the aggregator's pods", mode, object)
			}
		}
	}
	full := aggregating(t, "fleet-full", values{})
	if monitor := get[monitoring.ServiceMonitor](t, full, "ServiceMonitor/limits-aggregator"); monitor.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != "ratelimit-aggregator" {
		t.Errorf("the monitor selects %v", monitor.Spec.Selector)
	}
	if rules := get[networking.NetworkPolicy](t, full, "NetworkPolicy/limits-aggregator").Spec; len(rules.Ingress) != 1 || rules.Ingress[0].Ports[0].Port.StrVal != "http" || len(rules.Egress) != 4 {
		t.Errorf("the policy: %+v", rules)
	}
}

// Its pod reads the fleet's configuration, and has no more rights than the service's.
func TestAggregatorPod(t *testing.T) {
	added := aggregating(t, "fleet", values{"windows": []any{"hour", "month"}, "keep": values{"month": 0, "hour": "720h"}, "archive": "s3://audit-events/audit", "serviceAccountName": "usage", "replicas": 3})
	if n := *get[apps.Deployment](t, added, "Deployment/edge-ratelimit-aggregator").Spec.Replicas; n != 3 {
		t.Errorf("%d replicas", n)
	}
	spec := pod(t, added).Spec
	want := []string{"aggregate", "--config=/etc/ratelimit/ratelimit.yaml", "--windows=hour,month", "--keep=hour=720h", "--keep=month=0", "--flush=10s", "--archive=s3://audit-events/audit"}
	if got := spec.Containers[0].Args; !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
	if spec.ServiceAccountName != "usage" || spec.Volumes[0].ConfigMap.Name != "edge-ratelimit" {
		t.Errorf("account %s, volumes %+v", spec.ServiceAccountName, spec.Volumes)
	}
	service := pod(t, rendered(t, modes(t)["fleet"])).Spec
	for name, of := range map[string][2]any{
		"the container": {spec.Containers[0].SecurityContext.String(), service.Containers[0].SecurityContext.String()},
		"the token":     {*spec.AutomountServiceAccountToken, *service.AutomountServiceAccountToken},
		"the user":      {*spec.SecurityContext.RunAsUser, *service.SecurityContext.RunAsUser},
		"seccomp":       {spec.SecurityContext.SeccompProfile.String(), service.SecurityContext.SeccompProfile.String()},
		"its memory":    {spec.Containers[0].Resources.Limits.Memory().IsZero(), false},
		"its image":     {spec.Containers[0].Image, service.Containers[0].Image},
		"its probe":     {spec.Containers[0].LivenessProbe.HTTPGet.Path, "/healthz"},
		"its failure":   {spec.Containers[0].ReadinessProbe.HTTPGet.Path, "/readyz"},
		"its port":      {spec.Containers[0].Ports[0].ContainerPort, int32(8080)},
		"its account":   {pod(t, aggregating(t, "fleet", values{})).Spec.ServiceAccountName, service.ServiceAccountName},
		"its user":      {*spec.SecurityContext.RunAsNonRoot, true},
	} {
		if of[0] != of[1] {
			t.Errorf("%s: got %v, want %v", name, of[0], of[1])
		}
	}
	full := pod(t, aggregating(t, "fleet-full", values{})).Spec
	mounted := func(m core.VolumeMount) bool { return m.MountPath == "/secrets/reservation" }
	if !slices.ContainsFunc(full.Containers[0].VolumeMounts, mounted) {
		t.Errorf("the secrets of the configuration are not mounted: %v", full.Containers[0].VolumeMounts)
	}
}

// Beside a fleet on a server it archives alone, and reaches the server as the service does.
func TestAggregatorOnAServer(t *testing.T) {
	added := aggregating(t, "fleet-valkey-full", values{"archive": "s3://audit-events/audit"})
	spec, service := pod(t, added).Spec, pod(t, rendered(t, modes(t)["fleet-valkey-full"])).Spec
	if got, want := spec.Containers[0].Args, []string{"aggregate", "--config=/etc/ratelimit/ratelimit.yaml", "--archive=s3://audit-events/audit"}; !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
	for _, name := range []string{"valkey-server", "valkey-sentinel", "valkey-tls"} {
		volume, mount := func(v core.Volume) bool { return v.Name == name }, func(m core.VolumeMount) bool { return m.Name == name }
		i, j := slices.IndexFunc(spec.Volumes, volume), slices.IndexFunc(service.Volumes, volume)
		m, n := slices.IndexFunc(spec.Containers[0].VolumeMounts, mount), slices.IndexFunc(service.Containers[0].VolumeMounts, mount)
		if i < 0 || j < 0 || m < 0 || n < 0 {
			t.Errorf("%s: volumes %d and %d, mounts %d and %d", name, i, j, m, n)
			continue
		}
		if spec.Volumes[i].String() != service.Volumes[j].String() || spec.Containers[0].VolumeMounts[m] != service.Containers[0].VolumeMounts[n] {
			t.Errorf("%s: got %v at %v", name, spec.Volumes[i], spec.Containers[0].VolumeMounts[m])
		}
	}
	if rules := get[networking.NetworkPolicy](t, added, "NetworkPolicy/edge-ratelimit-aggregator").Spec; len(rules.Egress) != 4 || len(rules.Egress[1].Ports) != 3 || rules.Egress[2].Ports[0].Port.IntValue() != 443 {
		t.Errorf("the policy: %+v", rules.Egress)
	}
}

// The aggregator restarts with every change of the configuration.
func TestAggregatorRestarts(t *testing.T) {
	sum := func(rate string) string {
		v := with(with(modes(t)["fleet"], "aggregator.enabled", true), "config.limits", values{"system": values{"rpm": rate}})
		return get[apps.Deployment](t, rendered(t, v), "Deployment/edge-ratelimit-aggregator").Spec.Template.Annotations["checksum/config"]
	}
	if a, b := sum("1/minute"), sum("2/minute"); a == "" || a == b || a != sum("1/minute") {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestAggregatorRefusals(t *testing.T) {
	for _, test := range []struct {
		mode, path string
		value      any
		want       string
	}{
		{"memory", "aggregator.enabled", true, "aggregator.enabled: reads the table of a fleet, and the store embedded has none"},
		{"durable", "aggregator.enabled", true, "aggregator.enabled: reads the table of a fleet, and the store embedded has none"},
		{"fleet", "aggregator.windows", []any{"week"}, "at '/aggregator/windows/0'"},
		{"fleet", "aggregator.windows", []any{}, "at '/aggregator/windows'"},
		{"fleet", "aggregator.keep", values{"week": "9h"}, "additional properties 'week' not allowed"},
		{"fleet", "aggregator.keep", values{"hour": "1d"}, "at '/aggregator/keep/hour'"},
		{"fleet", "aggregator.keep", values{"hour": 5}, "at '/aggregator/keep/hour'"},
		{"fleet", "aggregator.flush", "2m", "at '/aggregator/flush'"},
		{"fleet", "aggregator.archive", "audit-events", "at '/aggregator/archive'"},
		{"fleet", "aggregator.replica", 1, "additional properties 'replica' not allowed"},
	} {
		_, _, err := render(load(t), with(modes(t)[test.mode], test.path, test.value))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %s %v: got %v, want %q", test.mode, test.path, test.value, err, test.want)
		}
	}
}
