package controlapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const usage = "/v1/namespaces/default/usage"

func TestUsage(t *testing.T) {
	s := newServer(t, nil)
	for _, key := range []string{"a", "b", "a"} {
		s.use(t, key)
	}
	start := limiter.UsageDay.Start(time.Now())
	one := func(entity api.Name, used api.Tokens, events int64) api.Usage {
		return api.Usage{Entity: entity, Resource: "r", Window: api.Day, Start: start, End: start.AddDate(0, 0, 1), Used: map[string]api.Tokens{"l": used}, Events: events}
	}
	var list api.List[api.Usage]
	var got []api.Usage
	for target := usage + "?window=day&size=1"; ; target = usage + "?window=day&size=1&after=" + list.Next {
		list = api.List[api.Usage]{}
		if err := json.Unmarshal(s.as(t, admin.RoleRead, http.MethodGet, target, "").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		got = append(got, list.Items...)
		if list.Next == "" {
			break
		}
	}
	if diff := cmp.Diff([]api.Usage{one("a", 8000, 2), one("b", 4000, 1)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for target, want := range map[string]api.UsageSummary{
		usage + "/summary?window=day": {
			Window: api.Day, Windows: 1, First: start, Last: start, Limits: map[string]api.UsedTotal{"l": {Total: 12_000, Average: 12_000}},
		},
		usage + "/summary?window=day&entity=none": {Window: api.Day, Limits: map[string]api.UsedTotal{}},
	} {
		var sum api.UsageSummary
		if err := json.Unmarshal(s.must(t, 200, http.MethodGet, target, "").Body.Bytes(), &sum); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// A budget is that of the most specific level, stored before file. It is shown where it is asked for.
func TestUsageBesideBudgets(t *testing.T) {
	s := newServer(t, nil)
	s.use(t, "a")
	s.use(t, "b")
	s.must(t, 201, http.MethodPut, "/v1/namespaces/default/limits/entities/b/r", `{"limits":{"l":{"rate":"10/day","budget":{"day":7}}}}`)
	type budget struct {
		Tokens map[string]int64
		From   map[string]string
	}
	none := budget{}
	for target, want := range map[string][]budget{
		"?window=day&budgets=true": {
			{map[string]int64{"l": 20}, map[string]string{"l": "system (file)"}}, {map[string]int64{"l": 7}, map[string]string{"l": "entity (stored)"}},
		},
		"?window=day":               {none, none},
		"?window=hour&budgets=true": {none, none},
	} {
		var list api.List[api.Usage]
		if err := json.Unmarshal(s.as(t, admin.RoleRead, http.MethodGet, usage+target, "").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		got := make([]budget, 0, len(list.Items))
		for _, u := range list.Items {
			got = append(got, budget{u.Budget, u.BudgetFrom})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// The quota of a rule comes before those of levels that are less specific than an entity for a resource.
func TestUsageBesideQuotaOfRule(t *testing.T) {
	month := func(tokens int64) limiter.Limit {
		return limiter.Quota("l", tokens, limiter.Calendar{Unit: limiter.CalendarMonth})
	}
	own, err := limiter.NewLimits(month(100))
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "shop", Rules: []descriptor.RuleSpec{{
		Name: "own", Match: []descriptor.MatchSpec{{Key: "bot", Value: "*"}},
		Takes: []descriptor.TakeSpec{{Entity: "bot/{bot}", Resource: "r", Limits: own, Consume: []descriptor.ConsumeSpec{{Limit: "l", Constant: 1000}}}},
	}}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	decides := limiter.EffectiveLimit{Limit: month(2000), Source: limiter.SourceSystemConfig}
	s := newServer(t, nil)
	s.use(t, "bot/a")
	s.use(t, "user/b")
	used := s.store.(limiter.Usage) //nolint:forcetypeassert // of a store of this test
	a, err := controlapi.New(controlapi.Config{Store: s.store, Usage: used, Now: time.Now, Status: api.Status{Can: api.Capabilities{Usage: true}}, Sources: controlapi.Sources{
		File: func() *controlapi.File { return &controlapi.File{Rules: rules} },
		Effective: func(context.Context, string, string, string, ...limiter.Stored) ([]limiter.EffectiveLimit, error) {
			return []limiter.EffectiveLimit{decides}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	for source, want := range map[limiter.Source][]string{
		limiter.SourceSystemConfig: {"bot/a 100 rule", "user/b 2000 system (file)"},
		limiter.SourceEntity:       {"bot/a 2000 entity (stored)", "user/b 2000 entity (stored)"},
	} {
		decides.Source = source
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/namespaces/default/usage?window=month&budgets=true", http.NoBody))
		var list api.List[api.Usage]
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(list.Items))
		for i, u := range list.Items {
			got[i] = fmt.Sprintf("%s %d %s", u.Entity, u.Budget["l"], u.BudgetFrom["l"])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

func TestUsageRefused(t *testing.T) {
	with, without := newServer(t, nil), newServer(t, inMemory(t))
	for _, tt := range []struct {
		s      *server
		target string
		status int
		says   string
	}{
		{with, usage + "?window=week", 400, "hour, day or month"},
		{with, usage + "?from=yesterday", 400, "2026-11-22T09:00:00Z"},
		{with, usage + "?from=2026-11-22T09:00:00Z&to=2026-11-21T09:00:00Z", 400, "before it begins"},
		{with, usage + "?after=x", 400, "cursor"},
		{with, usage + "?budgets=yes", 400, "must be true or false"},
		{with, usage + "?form=x", 400, `unknown parameter "form"`},
		{with, usage + "/summary?size=5", 400, `unknown parameter "size"`},
		{without, usage, 501, "keeps no usage"},
		{without, usage + "/summary", 501, "keeps no usage"},
	} {
		p := problemOf(t, tt.s.must(t, tt.status, http.MethodGet, tt.target, ""))
		if !strings.Contains(p.Detail, tt.says) {
			t.Errorf("%s: %q does not tell of %q", tt.target, p.Detail, tt.says)
		}
	}
}
