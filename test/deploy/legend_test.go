package deploy_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// inLegend finds the labels of a legend's format.
var inLegend = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// mayBeEmpty has, by metric, the label that is empty in some series: docs/metrics.md says
// when. Grafana shows the name of an empty label, as if it were the value.
var mayBeEmpty = map[string]string{"ratelimit_decisions_total": "rule", "ratelimit_denials_total": "limit"}

// A legend has the labels that its query groups by, and no empty ones.
func TestDashboardLegends(t *testing.T) {
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			grouping, selectors := parts(parsed(t, target.Expr))
			shown := legendLabels(target.Legend)
			if target.Legend == "" || len(grouping) > 0 && !slices.Equal(shown, grouping) {
				t.Errorf("%s, %s: the legend %q does not have the labels %q of the query", p.Title, target.RefID, target.Legend, grouping)
			}
			for _, s := range selectors {
				label := mayBeEmpty[s.Name]
				if slices.Contains(shown, label) && !demands(s, label) {
					t.Errorf(`%s, %s: the legend shows series without a %s as %[3]q; choose %[3]s!=""`, p.Title, target.RefID, label)
				}
			}
		}
	}
}

// A panel with one value says when its colour changes: Grafana's default is red from 80.
func TestDashboardThresholds(t *testing.T) {
	for _, p := range dashboard(t).Panels {
		if p.Type == "stat" && len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 {
			t.Errorf("%s: has no thresholds", p.Title)
		}
	}
}

// legendLabels returns the labels in the format of a legend.
func legendLabels(format string) []string {
	matches := inLegend.FindAllStringSubmatch(format, -1)
	names := make([]string, 0, len(matches))
	for _, match := range matches {
		names = append(names, match[1])
	}
	return names
}

// parts returns the labels that an expression groups by, and its selectors.
func parts(expr parser.Expr) (grouping []string, selectors []*parser.VectorSelector) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			for _, label := range node.Grouping {
				if label != "le" {
					grouping = append(grouping, label)
				}
			}
		case *parser.VectorSelector:
			selectors = append(selectors, node)
		}
		return nil
	})
	return grouping, selectors
}

// demands reports whether all series of a selector have a label.
func demands(s *parser.VectorSelector, label string) bool {
	return slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == label && !m.Matches("") })
}
