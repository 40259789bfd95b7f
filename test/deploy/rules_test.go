package deploy_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"gopkg.in/yaml.v3"
)

var rulesFile = filepath.Join(root, "deploy", "prometheus", "ratelimit.rules.yaml")

// rules reads the alerts as Prometheus does, which checks queries and templates.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// unitTests are those of promtool's format.
type unitTests struct {
	Tests []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		Alerts []alertTest `yaml:"alert_rule_test"`
	} `yaml:"tests"`
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
}

type alertTest struct {
	At    model.Duration `yaml:"eval_time"`
	Alert string         `yaml:"alertname"`
	Want  []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

// Every alert is raised where it must be, and is silent for a healthy fleet.
func TestAlerts(t *testing.T) {
	var file unitTests
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, "deploy", "prometheus", "ratelimit.test.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	byName, raised, silent := map[string]rulefmt.Rule{}, map[string]bool{}, map[string]bool{}
	for _, r := range rules(t) {
		byName[r.Alert] = r
	}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) {
			load := new(strings.Builder)
			fmt.Fprintf(load, "load %s\n", test.Interval)
			for _, s := range test.InputSeries {
				fmt.Fprintf(load, "  %s %s\n", s.Series, s.Values)
			}
			series := promqltest.LoadedStorage(t, load.String())
			for _, alert := range test.Alerts {
				rule, known := byName[alert.Alert]
				if !known {
					t.Fatalf("there is no alert %s", alert.Alert)
				}
				want := []string{}
				for _, w := range alert.Want {
					want = append(want, labels.FromMap(w.Labels).String()+" "+w.Annotations["summary"])
					if got := rule.Annotations["runbook_url"]; got != w.Annotations["runbook_url"] {
						t.Errorf("%s: runbook_url is %s, want %s", alert.Alert, got, w.Annotations["runbook_url"])
					}
				}
				slices.Sort(want)
				got := firing(t, series, rule, time.Duration(file.Interval), time.Duration(alert.At))
				if !slices.Equal(got, want) {
					t.Errorf("%s after %s: got %v, want %v", alert.Alert, alert.At, got, want)
				}
				if len(want) > 0 {
					raised[alert.Alert] = true
				} else {
					silent[alert.Alert] = true
				}
			}
		})
	}
	for name := range byName {
		if !raised[name] || !silent[name] {
			t.Errorf("%s: tested raised %v and silent %v, want both", name, raised[name], silent[name])
		}
	}
}

// firing returns the labels and summaries of the alerts that a rule has raised by a time: those of which
// each evaluation of the time before, as long as the rule waits, had a value.
func firing(t *testing.T, series storage.Queryable, rule rulefmt.Rule, step, at time.Duration) []string {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	if at < time.Duration(rule.For) {
		return nil // the first evaluation is at 0
	}
	counts, steps, last := map[string]int{}, 0, map[string]promql.Sample{}
	for when := at - time.Duration(rule.For); when <= at; when += step {
		steps++
		query, err := engine.NewInstantQuery(context.Background(), series, nil, rule.Expr, time.Unix(0, 0).Add(when))
		if err != nil {
			t.Fatal(err)
		}
		vector, err := query.Exec(context.Background()).Vector()
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range vector {
			name := alertLabels(sample, rule)
			counts[name]++
			last[name] = sample
		}
		query.Close()
	}
	alerts := []string{}
	for name, n := range counts {
		if n == steps {
			alerts = append(alerts, name+" "+summary(t, last[name], rule, at))
		}
	}
	slices.Sort(alerts)
	return alerts
}

// summary returns the text of an alert.
func summary(t *testing.T, sample promql.Sample, rule rulefmt.Rule, at time.Duration) string {
	t.Helper()
	values := map[string]string{}
	sample.Metric.Range(func(l labels.Label) { values[l.Name] = l.Value })
	text := "{{$labels := .Labels}}{{$value := .Value}}" + rule.Annotations["summary"]
	expander := template.NewTemplateExpander(context.Background(), text, rule.Alert, template.AlertTemplateData(values, nil, "", sample), model.TimeFromUnixNano(int64(at)), nil, nil, nil)
	expanded, err := expander.Expand()
	if err != nil {
		t.Fatalf("%s: %v", rule.Alert, err)
	}
	return expanded
}

func alertLabels(sample promql.Sample, rule rulefmt.Rule) string {
	all := map[string]string{}
	sample.Metric.Range(func(l labels.Label) {
		if l.Name != "__name__" {
			all[l.Name] = l.Value
		}
	})
	maps.Copy(all, rule.Labels)
	return labels.FromMap(all).String()
}

// The files of a unit test are those that exist.
func TestUnitTestsNameTheirRules(t *testing.T) {
	var file unitTests
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy", "prometheus", "ratelimit.test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(file.RuleFiles, []string{filepath.Base(rulesFile)}) {
		t.Errorf("rule_files: %v", file.RuleFiles)
	}
}

// Each alert leads to a section of the operations guide that names it.
func TestAlertsHaveRunbooks(t *testing.T) {
	const guide = "https://github.com/ratelimit/ratelimit/blob/main/docs/operations.md#"
	sections := map[string]bool{}
	text := readFile(t, "docs", "operations.md")
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			sections[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")] = true
		}
	}
	for _, r := range rules(t) {
		section, ok := strings.CutPrefix(r.Annotations["runbook_url"], guide)
		if !ok || !sections[section] || !strings.Contains(text, "`"+r.Alert+"`") {
			t.Errorf("%s: runbook_url is %q, of the guide with %v, which names the alert: %v", r.Alert, r.Annotations["runbook_url"], sections, strings.Contains(text, "`"+r.Alert+"`"))
		}
	}
}
