package server

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// The state of other replicas and of the aggregator is in the status, where it needs a person.
func TestFleetProblems(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	well := api.Replica{
		ID: "b", Host: "h", Ready: true, Configuration: api.Configuration{Hash: "1", LoadedAt: now.Add(-time.Hour)},
		Store: &api.StoreState{Type: "valkey", State: "available", Policy: "allow"},
	}
	for name, test := range map[string]struct {
		change func(f *api.Fleet, r *api.Replica)
		want   string // the beginning of the only problem; "" = none
	}{
		"well":                  {func(*api.Fleet, *api.Replica) {}, ""},
		"not ready":             {func(_ *api.Fleet, r *api.Replica) { r.Ready, r.Reason = false, "draining" }, "replica b on h is not ready: draining"},
		"refused":               {func(_ *api.Fleet, r *api.Replica) { r.Configuration.Error = "c.yaml:1" }, "replica b on h refused newer files of the configuration: c.yaml:1"},
		"another configuration": {func(_ *api.Fleet, r *api.Replica) { r.Configuration.Hash = "2" }, "replica b on h has another configuration in force"},
		"a new configuration": {func(_ *api.Fleet, r *api.Replica) {
			r.Configuration = api.Configuration{Hash: "2", LoadedAt: now.Add(-time.Minute)}
		}, ""},
		"an outage": {func(_ *api.Fleet, r *api.Replica) { r.Store.State = "unavailable" }, "the store valkey is unavailable for replica b on h: the policy allow decides there"},
		"an aggregator": {func(f *api.Fleet, _ *api.Replica) {
			f.Aggregator = &api.Aggregator{State: api.AggregatorCurrent, Seen: now, Text: "up to date 3 s ago"}
		}, ""},
		"a slow aggregator": {func(f *api.Fleet, _ *api.Replica) {
			f.Aggregator = &api.Aggregator{State: api.AggregatorBehind, Seen: now, Text: "14 min behind", Do: "more processes"}
		}, "aggregator: 14 min behind"},
	} {
		t.Run(name, func(t *testing.T) {
			here, other, store := well, well, *well.Store
			here.ID, here.Here, other.Store = "a", true, &store
			f := &api.Fleet{Time: now}
			test.change(f, &other)
			f.Replicas = []api.Replica{here, other}
			got := fleetProblems(f)
			if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].What, test.want) || got[0].Do == "" || got[0].Section == "") {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}

// Descriptors of which none met a rule are a problem, denied or not.
func TestRuleProblems(t *testing.T) {
	for name, test := range map[string]struct {
		results, denials map[string]int64
		want             string
	}{
		"nothing came":          {map[string]int64{"allowed": 0, "unmatched": 0}, nil, ""},
		"all admitted":          {map[string]int64{"unmatched": 3}, nil, "no rule matched a descriptor since the start: 3 came, and 0 of them"},
		"all denied":            {map[string]int64{"denied": 3}, map[string]int64{"unmatched": 3}, "no rule matched a descriptor since the start: 3 came, and 3 of them"},
		"denied by a limit too": {map[string]int64{"denied": 4}, map[string]int64{"unmatched": 3, "limit_exhausted": 1}, ""},
		"one met a rule":        {map[string]int64{"unmatched": 3, "allowed": 1}, nil, ""},
	} {
		got := ruleProblems(test.results, test.denials)
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].What, test.want)) {
			t.Errorf("%s: got %+v, want %q", name, got, test.want)
		}
	}
}

// Each section of a problem is a heading of the operations guide.
func TestSectionsAreOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{
		api.SectionDenial, api.SectionEnforced, api.SectionCascade, api.SectionBudget, api.SectionUsage, api.SectionOutage, api.SectionReplica,
	} {
		if !strings.Contains(string(guide), "\n## "+section+"\n") {
			t.Errorf("docs/operations.md has no section %q", section)
		}
	}
}
