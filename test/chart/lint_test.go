package chart_test

import (
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// Helm's linter has nothing to say, in any mode.
func TestLint(t *testing.T) {
	for name, v := range modes(t) {
		for _, message := range lint.All(chartDir, v, "ratelimit", true).Messages {
			if message.Severity > support.InfoSev { // an icon would be nice
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// Every mode decodes into Kubernetes' own types.
func TestDecodes(t *testing.T) {
	for _, v := range modes(t) {
		rendered(t, v)
	}
}
