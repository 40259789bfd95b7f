package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var t0 = time.Unix(1_000_000, 0).UTC()

// newExplainer returns an explainer of rules with a store of its own, and the limiter that decides
// in it.
func newExplainer(t *testing.T, rules ...descriptor.RuleSpec) (*admin.Explainer, *limiter.Limiter) {
	t.Helper()
	store := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	system, err := limiter.NewLimits(limiter.PerMinute("rpm", 10), limiter.PerMinute("tpm", 100))
	if err != nil {
		t.Fatal(err)
	}
	err = l.SetStatic(t.Context(), limiter.Static{
		System:   system,
		Entities: map[string]limiter.StaticEntity{"user/ada": {Parent: "org/acme", Cascade: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	compiled, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "shop", Rules: rules}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &admin.Explainer{InForce: func() *admin.InForce { return &admin.InForce{Rules: compiled} }, Decider: l, Now: func() time.Time { return t0 }}, l
}

// users is a rule for users, with a match for the key meter where it is not "".
func users(name, meter string, take descriptor.TakeSpec) descriptor.RuleSpec {
	take.Entity, take.Resource = "user/{user}", "api"
	r := descriptor.RuleSpec{Name: name, Match: []descriptor.MatchSpec{{Key: "user", Value: "*"}}, Takes: []descriptor.TakeSpec{take}}
	if meter != "" {
		r.Match = append(r.Match, descriptor.MatchSpec{Key: "meter", Value: meter})
	}
	return r
}

func consume(limit string, constant, perHit int64) descriptor.TakeSpec {
	return descriptor.TakeSpec{Consume: []descriptor.ConsumeSpec{{Limit: limit, Constant: constant, PerHit: perHit}}}
}

func ask(t *testing.T, e *admin.Explainer, q admin.Question) *admin.Explanation {
	t.Helper()
	x, err := e.Explain(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func entries(keysAndValues ...string) []admin.Entry {
	var out []admin.Entry
	for i := 0; i < len(keysAndValues); i += 2 {
		out = append(out, admin.Entry{Key: keysAndValues[i], Value: keysAndValues[i+1]})
	}
	return out
}

func TestExplain(t *testing.T) {
	charge := users("tokens", "tokens", consume("tpm", 0, 1500))
	charge.Overdraw = true
	e, l := newExplainer(t,
		descriptor.RuleSpec{Name: "admins", Match: []descriptor.MatchSpec{{Key: "user", Value: "admin-*"}}, Unlimited: true},
		users("requests", "", consume("rpm", 1000, 0)), charge)

	req := &limiter.Request{Takes: []limiter.Take{{Entity: "user/ada", Resource: "api", Consume: []limiter.Consumption{{Limit: "rpm", Amount: 9500}}}}}
	if err := l.Decide(t.Context(), t0, req, new(limiter.Decision)); err != nil {
		t.Fatal(err)
	}
	hits := func(n uint64) *uint64 { return &n }
	row := func(entity, name, action, amount, available string, level int, enough bool) admin.Limit {
		rate := map[string]string{"rpm": "10/minute", "tpm": "100/minute"}[name]
		return admin.Limit{Entity: entity, Level: level, Resource: "api", Name: name, Rate: rate, Source: "system (file)", Action: action, Amount: amount, Available: available, Enough: enough}
	}
	short := func(l admin.Limit) admin.Limit {
		l.RetryAfter = "3s" // half a token of 10 a minute
		return l
	}
	miss := []admin.Missed{{Rule: "admins", Why: `user "ada" does not match "admin-*"`}}
	for _, test := range []struct {
		name string
		q    admin.Question
		want admin.Explanation
	}{
		{"too little left, for the parent too", admin.Question{Domain: "shop", Entries: entries("user", "ada")}, admin.Explanation{
			Domain: "shop", Namespace: "default", Outcome: "takes", Rule: "requests", Missed: miss, RetryAfter: "3s", OnUnavailable: "allow",
			Limits: []admin.Limit{short(row("user/ada", "rpm", "take", "1", "0.500", 0, false)), short(row("org/acme", "rpm", "take", "1", "0.500", 1, false))},
		}},
		{"a look", admin.Question{Domain: "shop", Entries: entries("user", "bob"), Hits: hits(0)}, admin.Explanation{
			Domain: "shop", Namespace: "default", Outcome: "takes", Rule: "requests", Admitted: true, OnUnavailable: "allow",
			Missed: []admin.Missed{{Rule: "admins", Why: `user "bob" does not match "admin-*"`}},
			Limits: []admin.Limit{row("user/bob", "rpm", "look", "0", "10", 0, true)},
		}},
		{"unlimited", admin.Question{Domain: "shop", Entries: entries("user", "admin-1")}, admin.Explanation{
			Domain: "shop", Namespace: "default", Outcome: "unlimited", Rule: "admins", Admitted: true,
		}},
		{"an unknown domain", admin.Question{Domain: "shap", Entries: entries("user", "ada")}, admin.Explanation{
			Domain: "shap", Outcome: "unmatched", Admitted: true, Domains: []string{"shop"}, DidYouMean: "shop",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(&test.want, ask(t, e, test.q)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("a charge is never too much", func(t *testing.T) {
		x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "bob", "meter", "tokens"), Hits: hits(1000)})
		if diff := cmp.Diff([]admin.Limit{row("user/bob", "tpm", "charge", "1500", "100", 0, true)}, x.Limits); diff != "" || !x.Admitted {
			t.Errorf("admitted %t (-want +got)\n%s", x.Admitted, diff)
		}
	})
	t.Run("it takes nothing", func(t *testing.T) {
		q := admin.Question{Domain: "shop", Entries: entries("user", "ada")}
		if diff := cmp.Diff(ask(t, e, q), ask(t, e, q)); diff != "" {
			t.Errorf("the second answer differs:\n%s", diff)
		}
	})
	t.Run("names that are no text are quoted", func(t *testing.T) {
		x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "k\xff\n")})
		if got, want := x.Limits[0].Entity, `"user/k\xff\n"`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestExplainWhatIsNotConfigured(t *testing.T) {
	e, _ := newExplainer(t, users("requests", "", consume("rph", 1000, 0)))
	x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "ada")})
	if x.Admitted || x.Why != "limit_not_configured: rph" {
		t.Errorf("got admitted %t, why %q", x.Admitted, x.Why)
	}
}

// A charge is never denied, and the explanation names the part of it that cannot be booked.
func TestExplainAChargeThatCannotBeBooked(t *testing.T) {
	rule := users("tokens", "", consume("tph", 0, 1000))
	rule.Overdraw = true
	e, _ := newExplainer(t, rule)
	hits := uint64(5)
	x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "ada"), Hits: &hits})
	if !x.Admitted || x.Why != "limit_not_configured: tph" {
		t.Errorf("got admitted %t, why %q", x.Admitted, x.Why)
	}
}

func TestExplainAnUnknownDomainThatIsDenied(t *testing.T) {
	e, _ := newExplainer(t)
	rules := e.InForce().Rules
	e.InForce = func() *admin.InForce { return &admin.InForce{Rules: rules, UnmatchedDeny: true} }
	if x := ask(t, e, admin.Question{Domain: "shap", Entries: entries("user", "ada")}); x.Admitted || x.Outcome != "unmatched" {
		t.Errorf("got admitted %t, outcome %q", x.Admitted, x.Outcome)
	}
}

// The explanation must equal the decision of the service. Takes of one bucket add up, and those of
// different buckets do not.
func TestExplainTakesOfOneBucket(t *testing.T) {
	rule := func(name string, own bool) descriptor.RuleSpec {
		r := users(name, name, consume("rpm", 6000, 0))
		second := r.Takes[0]
		if own {
			limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 10))
			if err != nil {
				t.Fatal(err)
			}
			second.Limits = limits
		}
		r.Takes = append(r.Takes, second)
		return r
	}
	e, _ := newExplainer(t, rule("same", false), rule("apart", true))
	for name, want := range map[string]bool{"same": false, "apart": true} {
		x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "bob", "meter", name)})
		if x.Admitted != want || len(x.Limits) != 2 || x.Limits[0].Enough != want || x.Limits[1].Enough != want {
			t.Errorf("%s: got admitted %t, want %t; limits %+v", name, x.Admitted, want, x.Limits)
		}
	}
}

func TestHandler(t *testing.T) {
	e, _ := newExplainer(t, users("requests", "", consume("rpm", 1000, 0)))
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total", Help: "Seen."}))
	var health admin.Health
	health.Loaded(admin.FromFiles, []string{"a.yaml"}, "abc", t0)
	handler := func(pprof bool) http.Handler {
		return admin.Handler(admin.Config{
			JSON:      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
			Explainer: e, Health: &health, Gatherer: registry, PProf: pprof,
		})
	}
	for _, test := range []struct {
		method, path, body string
		pprof              bool
		code               int
		want               string
	}{
		{"POST", "/json", "", false, http.StatusTeapot, ""},
		{"PUT", "/json", "", false, http.StatusTeapot, ""},
		{"GET", "/healthz", "", false, http.StatusOK, "ok"},
		{"GET", "/healthcheck", "", false, http.StatusInternalServerError, ""},
		{"GET", "/readyz", "", false, http.StatusServiceUnavailable, `"hash": "abc"`},
		{"GET", "/metrics", "", false, http.StatusOK, "seen_total 0"},
		{"GET", "/", "", false, http.StatusOK, "/v1/explain"},
		{"GET", "/nothing", "", false, http.StatusNotFound, ""},
		{"GET", "/v1/explain", "", false, http.StatusMethodNotAllowed, ""},
		{"POST", "/v1/explain", `{"domain":"shop","entries":[{"key":"user","value":"eve"}]}`, false, http.StatusOK, `"rule": "requests"`},
		{"POST", "/v1/explain", `{"domain":"shop"}`, false, http.StatusBadRequest, "at least one entry"},
		{"POST", "/v1/explain", `{"domain":`, false, http.StatusBadRequest, "send {"},
		{"POST", "/v1/explain", `{"domian":"shop"}`, false, http.StatusBadRequest, "domian"},
		{"GET", "/v1/backup", "", false, http.StatusNotFound, "server.admin"},
		{"POST", "/v1/restore", "", false, http.StatusNotFound, "server.admin"},
		{"GET", "/debug/pprof/", "", false, http.StatusNotFound, ""},
		{"GET", "/debug/pprof/", "", true, http.StatusOK, "goroutine"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
		r.Header.Set("Content-Type", "application/json")
		handler(test.pprof).ServeHTTP(w, r)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %s: got %d, want %d with %q:\n%s", test.method, test.path, w.Code, test.code, test.want, w.Body)
		}
	}
}

func TestHealth(t *testing.T) {
	var h admin.Health
	check := func(what string, ready bool, reason, loadError string) {
		t.Helper()
		s := h.State()
		if s.Ready != ready || s.Reason != reason || s.Config.Error != loadError {
			t.Errorf("%s: got %+v", what, s)
		}
	}
	check("new", false, "", "")
	h.Loaded(admin.FromFiles, []string{"a"}, "1", t0)
	h.SetReady()
	check("started", true, "", "")
	h.LoadFailed(admin.FromFiles, "broken", t0)
	check("a reload failed", true, "", "broken")
	if h.State().Config.Hash != "1" {
		t.Error("the configuration in force is no longer shown")
	}
	h.Loaded(admin.FromFiles, []string{"a"}, "2", t0)
	check("mended", true, "", "")
	h.LoadFailed(admin.FromFiles, "broken", t0)
	h.Loaded(admin.FromControlPlane, []string{"a"}, "2", t0)
	check("new rules of a control plane beside broken files", true, "", "broken")
	h.LoadFailed(admin.FromControlPlane, "no rules", t0)
	check("both broken", true, "", "broken")
	h.Loaded(admin.FromFiles, []string{"a"}, "2", t0)
	check("mended files beside broken rules", true, "", "no rules")
	h.Loaded(admin.FromControlPlane, []string{"a"}, "2", t0)
	check("both mended", true, "", "")
	h.SetTrouble("no file")
	check("in trouble", false, "no file", "")
	h.SetTrouble("")
	check("out of it", true, "", "")
	h.SetTrouble("no file")
	h.SetNotReady("shutting down")
	check("draining", false, "shutting down", "")
	h.SetTrouble("")
	check("draining without trouble", false, "shutting down", "")
}

// Ask a running service about a descriptor.
func ExampleExplainer() {
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(context.Background()) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, _ := descriptor.Compile([]descriptor.DomainSpec{{Domain: "shop", Rules: []descriptor.RuleSpec{
		{Name: "open", Match: []descriptor.MatchSpec{{Key: "user", Value: "*"}}, Unlimited: true},
	}}}, nil)
	e := &admin.Explainer{InForce: func() *admin.InForce { return &admin.InForce{Rules: rules} }, Decider: l, Now: time.Now}

	server := httptest.NewServer(e)
	defer server.Close()
	resp, err := http.Post(server.URL, "application/json", strings.NewReader(`{"domain":"shop","entries":[{"key":"user","value":"ada"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	var x admin.Explanation
	body, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(body, &x); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Rule, x.Outcome, x.Admitted)
	// Output: open unlimited true
}

// shadowed is an explainer of two limits of envoyproxy/ratelimit, one in shadow_mode.
func shadowed(t *testing.T) (*admin.Explainer, *limiter.Limiter) {
	t.Helper()
	e, l := newExplainer(t)
	tree := []descriptor.TreeSpec{
		{Key: "database", Value: "trial", Shadow: true, Limit: &descriptor.TreeLimitSpec{Unit: "minute", RequestsPerUnit: 2}},
		{Key: "database", Limit: &descriptor.TreeLimitSpec{Unit: "minute", RequestsPerUnit: 5}},
	}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "mongo_cps", Tree: tree}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e.InForce = func() *admin.InForce { return &admin.InForce{Rules: rules} }
	return e, l
}

// For a limit of envoyproxy/ratelimit in shadow_mode the explanation equals the service: it admits,
// and reports that it would have denied.
func TestExplainShadowMode(t *testing.T) {
	e, l := shadowed(t)
	q := admin.Question{Domain: "mongo_cps", Entries: entries("database", "trial")}
	row := func(available string, enough bool) []admin.Limit {
		return []admin.Limit{{
			Entity: "database=trial", Resource: "mongo_cps", Name: "requests", Rate: "2/minute", Source: "rule",
			Action: "take", Amount: "1", Available: available, Enough: enough,
		}}
	}
	want := &admin.Explanation{
		Domain: "mongo_cps", Namespace: "default", Outcome: "shadow", Rule: "database_trial", Admitted: true,
		Shadows: []admin.Shadow{{Rule: "database_trial", Limits: row("2", true)}},
	}
	if diff := cmp.Diff(want, ask(t, e, q)); diff != "" {
		t.Errorf("full (-want +got)\n%s", diff)
	}
	plan := e.InForce().Rules.Explain("mongo_cps", &descriptor.Descriptor{Entries: []descriptor.Entry{{Key: "database", Value: "trial"}}}).Plan
	for range 2 {
		if err := l.Decide(t.Context(), t0, &plan.Shadows[0].Request, new(limiter.Decision)); err != nil {
			t.Fatal(err)
		}
	}
	empty := row("0", false)
	empty[0].RetryAfter = "30s" // of a rate of 2 a minute
	want.Shadows = []admin.Shadow{{Rule: "database_trial", WouldDeny: true, Limits: empty}}
	if diff := cmp.Diff(want, ask(t, e, q)); diff != "" {
		t.Errorf("empty (-want +got)\n%s", diff)
	}
}

// A number of an envoyproxy/ratelimit file is explained as a take, and a 0 looks: it is over in debt only.
func TestExplainANumberOfAFile(t *testing.T) {
	e, l := shadowed(t)
	explains := func(hits uint64, action string, want bool) {
		t.Helper()
		x := ask(t, e, admin.Question{Domain: "mongo_cps", Entries: entries("database", "x"), Hits: &hits})
		if x.Admitted != want || len(x.Limits) != 1 || x.Limits[0].Enough != want || x.Limits[0].Action != action {
			t.Errorf("%d of 5: got %+v, want %s and admitted %t", hits, x, action, want)
		}
	}
	explains(5, "take", true)
	explains(6, "take", false)
	explains(0, "look", true)
	plan := e.InForce().Rules.Explain("mongo_cps", &descriptor.Descriptor{Entries: []descriptor.Entry{{Key: "database", Value: "x"}}, Hits: 5, HitsSet: true}).Plan
	if err := l.Decide(t.Context(), t0, &plan.Request, new(limiter.Decision)); err != nil {
		t.Fatal(err)
	}
	explains(0, "look", true)
	plan.Request.Takes[0].Mode = limiter.Charge
	if err := l.Decide(t.Context(), t0, &plan.Request, new(limiter.Decision)); err != nil {
		t.Fatal(err)
	}
	explains(0, "look", false)
}

// A native rule in shadow mode shows its limits, beside those of the rule that enforces.
func TestExplainAShadowRule(t *testing.T) {
	shadow := users("trial", "", consume("tpm", 200_000, 0))
	shadow.Shadow = true
	e, _ := newExplainer(t, shadow, users("requests", "", consume("rpm", 1000, 0)))
	x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "bob")})
	if !x.Admitted || x.Outcome != "takes" || x.Rule != "requests" {
		t.Errorf("the rule that enforces: got %+v", x)
	}
	if len(x.Shadows) != 1 || x.Shadows[0].Rule != "trial" || !x.Shadows[0].WouldDeny || x.Shadows[0].Why != "exceeds_capacity" && len(x.Shadows[0].Limits) == 0 {
		t.Fatalf("shadows: got %+v, want trial, which would deny", x.Shadows)
	}
	if l := x.Shadows[0].Limits[0]; l.Name != "tpm" || l.Amount != "200" || l.Enough {
		t.Errorf("limit of the shadow: got %+v", l)
	}
}

// For a descriptor without a rule the explanation suggests the closest names.
func TestExplainWhatIsMistyped(t *testing.T) {
	e, _ := newExplainer(t, users("requests", "", consume("rpm", 1000, 0)), users("tokens", "tokens", consume("tpm", 1000, 0)))
	tree, _ := shadowed(t)
	for _, test := range []struct {
		name    string
		e       *admin.Explainer
		domain  string
		entries []admin.Entry
		want    admin.Explanation
	}{
		{"domain", e, "shpo", entries("user", "u"), admin.Explanation{Domain: "shpo", Domains: []string{"shop"}, DidYouMean: "shop"}},
		{"another domain", e, "elsewhere", entries("user", "u"), admin.Explanation{Domain: "elsewhere", Domains: []string{"shop"}}},
		{"key", e, "shop", entries("usr", "u"), admin.Explanation{Nearest: &admin.Missed{
			Rule: "requests", Why: "key user missing; has key usr, which the rule does not name (did you mean user?)",
		}}},
		{"value", e, "shop", entries("user", "u", "meter", "token"), admin.Explanation{Nearest: &admin.Missed{
			Rule: "tokens", Why: `meter "token" does not match "tokens"`,
		}}},
		{"key of a tree", tree, "mongo_cps", entries("databse", "x"), admin.Explanation{Nearest: &admin.Missed{
			Why: "entry 1 has key databse; there is database (did you mean database?)",
		}}},
		{"too many entries of a tree", tree, "mongo_cps", entries("database", "x", "tenant", "t"), admin.Explanation{Nearest: &admin.Missed{
			Why: "entry 2, key tenant, comes after the last descriptor of the file on this way",
		}}},
	} {
		x := ask(t, test.e, admin.Question{Domain: test.domain, Entries: test.entries})
		got := admin.Explanation{Domain: test.want.Domain, Domains: x.Domains, DidYouMean: x.DidYouMean, Nearest: x.Nearest}
		if diff := cmp.Diff(test.want, got); diff != "" || x.Outcome != "unmatched" {
			t.Errorf("%s: outcome %q (-want +got)\n%s", test.name, x.Outcome, diff)
		}
	}
}

// A request from any client takes little memory, with any number of rules.
func TestLargeQuestions(t *testing.T) {
	rules := make([]descriptor.RuleSpec, 300)
	for i := range rules {
		rules[i] = users("r"+strconv.Itoa(i), "", consume("rpm", 1000, 0))
	}
	e, _ := newExplainer(t, rules...)
	const entry = `{"key":"a","value":""},`
	many := `{"domain":"shop","entries":[` + strings.Repeat(entry, 2500) + `{"key":"a","value":""}]}`
	for _, test := range []struct {
		name, body string
		code       int
	}{
		{"many entries", many, http.StatusOK},
		{"a long domain", `{"domain":"` + strings.Repeat("D", 60_000) + `","entries":[{"key":"a","value":""}]}`, http.StatusOK},
		{"too long", `{"domain":"` + strings.Repeat("D", 64<<10) + `","entries":[{"key":"a","value":""}]}`, http.StatusRequestEntityTooLarge},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/explain", strings.NewReader(test.body))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s: %d KiB are allocated, want 4096 at most", test.name, got>>10)
		}
		if w.Code != test.code {
			t.Errorf("%s: got %d, want %d: %.200s", test.name, w.Code, test.code, w.Body)
		}
	}
}

// lateDecider decides like another decider, and marks the decision as late.
type lateDecider struct{ admin.Decider }

func (l lateDecider) Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
	err := l.Decider.Decide(ctx, now, req, d)
	d.Late = true
	return err
}

// An explanation from last seen state says so, for shadow rules too.
func TestExplainLate(t *testing.T) {
	e, l := shadowed(t)
	e.Decider = lateDecider{l}
	for _, database := range []string{"trial", "users"} {
		x := ask(t, e, admin.Question{Domain: "mongo_cps", Entries: entries("database", database)})
		if !x.Late || x.Fallback != "" {
			t.Errorf("database %s: got %+v", database, x)
		}
	}
}
