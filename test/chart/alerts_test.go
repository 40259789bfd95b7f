package chart_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The chart has the alerts of deploy/prometheus, which are tested there, on the metrics of its own pods alone.
func TestAlerts(t *testing.T) {
	source := readFile(t, "..", "..", "deploy", "prometheus", "ratelimit.rules.yaml")
	if source != readFile(t, chartDir, "files", "ratelimit.rules.yaml") {
		t.Error("copy deploy/prometheus/ratelimit.rules.yaml to charts/ratelimit/files: they differ")
	}
	var want monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict([]byte(source), &want); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"durable", "fleet-full", "fleet-valkey-full"} {
		objects, found := rendered(t, modes(t)[mode]), false
		for name := range objects {
			release, ok := strings.CutPrefix(name, "PrometheusRule/")
			if ok {
				found = true
				wantAlerts(t, get[monitoring.PrometheusRule](t, objects, name).Spec.Groups[0].Rules, want.Groups[0].Rules, release)
			}
		}
		if !found {
			t.Errorf("%s: there are no alerts", mode)
		}
	}
}

// wantAlerts requires the alerts, with each metric narrowed to the pods of a release.
func wantAlerts(t *testing.T, got, want []monitoring.Rule, release string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d alerts, want %d", release, len(got), len(want))
	}
	metric := regexp.MustCompile(`ratelimit_\w+(\{[^}]*\})?`)
	own := `namespace="ratelimit", pod=~"` + release + `-.+"`
	for i := range want {
		narrowed := metric.ReplaceAllStringFunc(want[i].Expr.String(), func(m string) string {
			name, matchers, _ := strings.Cut(strings.TrimSuffix(m, "}"), "{")
			return name + "{" + strings.Join(slices.DeleteFunc([]string{own, matchers}, func(s string) bool { return s == "" }), ", ") + "}"
		})
		if got[i].Alert != want[i].Alert || got[i].Expr.String() != narrowed {
			t.Errorf("%s: alert %s is %s, want %s: %s", release, got[i].Alert, got[i].Expr.String(), want[i].Alert, narrowed)
		}
		if got[i].Annotations["summary"] != want[i].Annotations["summary"] || got[i].Annotations["runbook_url"] == "" {
			t.Errorf("%s: alert %s has the annotations %v", release, got[i].Alert, got[i].Annotations)
		}
	}
}
