package deploy_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"gopkg.in/yaml.v3"
)

var rulesFile = filepath.Join(root, "deploy", "prometheus", "ratelimit.rules.yaml")

// alertRules reads the alerts as Prometheus does, which checks queries and templates.
func alertRules(t *testing.T) []rulefmt.Rule {
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
	Tests     []unitTest     `yaml:"tests"`
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
}

type unitTest struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []alertTest `yaml:"alert_rule_test"`
}

type alertTest struct {
	At    model.Duration `yaml:"eval_time"`
	Alert string         `yaml:"alertname"`
	Want  []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

// Every alert is raised where it must be, and is silent for a healthy fleet. Prometheus's own
// manager evaluates the rules, as for promtool.
func TestAlerts(t *testing.T) {
	var file unitTests
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, "deploy", "prometheus", "ratelimit.test.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	known, raised, silent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range alertRules(t) {
		known[r.Alert] = true
	}
	for i := range file.Tests {
		test := &file.Tests[i]
		t.Run(test.Name, func(t *testing.T) {
			got := test.firing(t, time.Duration(file.Interval))
			for _, alert := range test.Alerts {
				if !known[alert.Alert] {
					t.Errorf("there is no alert %s", alert.Alert)
				}
				want := alert.want()
				if alerts := got[alert.At][alert.Alert]; !slices.Equal(alerts, want) {
					t.Errorf("%s after %s (-want +got):\n%s", alert.Alert, alert.At, cmp.Diff(want, alerts))
				}
				if len(want) > 0 {
					raised[alert.Alert] = true
				} else {
					silent[alert.Alert] = true
				}
			}
		})
	}
	for name := range known {
		if !raised[name] || !silent[name] {
			t.Errorf("%s: tested raised %v and silent %v, want both", name, raised[name], silent[name])
		}
	}
}

// want returns the alerts that a test expects, as texts in order.
func (a *alertTest) want() []string {
	all := make([]string, 0, len(a.Want))
	for _, w := range a.Want {
		w.Labels[labels.AlertName] = a.Alert
		all = append(all, labels.FromMap(w.Labels).String()+labels.FromMap(w.Annotations).String())
	}
	slices.Sort(all)
	return all
}

// firing returns the alerts that fire at each time of a test, by their names, as texts in order.
func (u *unitTest) firing(t *testing.T, every time.Duration) map[model.Duration]map[string][]string {
	t.Helper()
	input := new(strings.Builder)
	fmt.Fprintf(input, "load %s\n", u.Interval)
	for _, s := range u.InputSeries {
		fmt.Fprintf(input, "  %s %s\n", s.Series, s.Values)
	}
	suite, err := promqltest.NewLazyLoader(input.String(), promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = suite.Close() }()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), Appendable: suite.Storage(), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(every, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := map[model.Duration]map[string][]string{}
	for at := time.Duration(0); at <= u.last(); at += every {
		suite.WithSamplesTill(time.Unix(0, 0).Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			all[model.Duration(at)] = evaluated(t, groups, time.Unix(0, 0).Add(at))
		})
	}
	return all
}

// last returns the last time that a test asks for.
func (u *unitTest) last() time.Duration {
	var last time.Duration
	for _, alert := range u.Alerts {
		last = max(last, time.Duration(alert.At))
	}
	return last
}

// evaluated evaluates groups of rules, and returns the alerts that fire then, by their names.
func evaluated(t *testing.T, groups map[string]*rules.Group, at time.Time) map[string][]string {
	t.Helper()
	firing := map[string][]string{}
	for _, group := range groups {
		group.Eval(t.Context(), at)
		for _, rule := range group.AlertingRules() {
			if err := rule.LastError(); err != nil {
				t.Errorf("%s: %v", rule.Name(), err)
			}
			for _, alert := range rule.ActiveAlerts() {
				if alert.State == rules.StateFiring {
					firing[rule.Name()] = append(firing[rule.Name()], alert.Labels.String()+alert.Annotations.String())
				}
			}
			slices.Sort(firing[rule.Name()])
		}
	}
	return firing
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
	for _, r := range alertRules(t) {
		section, ok := strings.CutPrefix(r.Annotations["runbook_url"], guide)
		if !ok || !sections[section] || !strings.Contains(text, "`"+r.Alert+"`") {
			t.Errorf("%s: runbook_url is %q, of the guide with %v, which names the alert: %v", r.Alert, r.Annotations["runbook_url"], sections, strings.Contains(text, "`"+r.Alert+"`"))
		}
	}
}
