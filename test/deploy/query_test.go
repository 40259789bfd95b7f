package deploy_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

var update = flag.Bool("update", false, "write deploy/metrics.txt anew")

// root is the repository's.
var root = filepath.Join("..", "..")

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parsed returns the expression of a query. Variables of Grafana are replaced.
func parsed(t *testing.T, query string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$domain", ".*").Replace(query))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return expr
}

// ofPrometheus are labels that Prometheus itself adds.
var ofPrometheus = []string{"__name__", "job", "instance", "le"}

// addLabels adds the labels that an expression wants of each metric.
func addLabels(metrics map[string]map[string]bool, expr parser.Expr) {
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := histogramOf(selector.Name)
		if metrics[name] == nil {
			metrics[name] = map[string]bool{}
		}
		var labels []string
		for _, m := range selector.LabelMatchers {
			labels = append(labels, m.Name)
		}
		for _, label := range append(labels, wanted(path, node)...) {
			if !slices.Contains(ofPrometheus, label) {
				metrics[name][label] = true
			}
		}
		return nil
	})
}

// wanted returns the labels that the expressions above a selector want of it. Those above an `and` or
// `unless` want none of its right side.
func wanted(path []parser.Node, selector parser.Node) []string {
	var all []string
	for i, above := range path {
		below := selector
		if i+1 < len(path) {
			below = path[i+1]
		}
		switch above := above.(type) {
		case *parser.AggregateExpr:
			if !above.Without {
				all = append(all, above.Grouping...)
			}
		case *parser.BinaryExpr:
			if (above.Op == parser.LAND || above.Op == parser.LUNLESS) && below == above.RHS {
				all = slices.Clone(above.VectorMatching.MatchingLabels)
			}
		}
	}
	return all
}

// histogramOf returns the histogram that a series is of, or the name as it is.
func histogramOf(name string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.HasSuffix(base, "_seconds") {
			return base
		}
	}
	return name
}

// deploy/metrics.txt lists the metrics and labels of all queries. A test of the program
// compares it with the program's registry.
func TestMetricsAreListed(t *testing.T) {
	metrics := map[string]map[string]bool{}
	for _, r := range alertRules(t) {
		addLabels(metrics, parsed(t, r.Expr))
	}
	for _, query := range dashboard(t).queries() {
		addLabels(metrics, parsed(t, query))
	}
	want := new(strings.Builder)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		want.WriteString(strings.TrimSpace(name+" "+strings.Join(slices.Sorted(maps.Keys(metrics[name])), " ")) + "\n")
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, "deploy", "metrics.txt"), []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := readFile(t, "deploy", "metrics.txt"); got != want.String() {
		t.Error("deploy/metrics.txt differs from the queries; `cd test/deploy && go test -run TestMetrics -update` writes it")
	}
}
