package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// post sends a body to a handler, and reads the answer into out.
func post(t interface{ Fatalf(string, ...any) }, h http.Handler, body string, out any) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code
}

// callText is a RateLimitRequest in JSON.
func callText(descriptors ...string) string {
	return `{"domain": "shop", "descriptors": [` + strings.Join(descriptors, ",") + `]}`
}

func descriptorText(user, more string) string {
	return fmt.Sprintf(`{"entries": [{"key": "user", "value": %q}]%s}`, user, more)
}

// The explanation of a call equals the answer of the service, for any descriptors and balances,
// with refunds and charges.
func TestExplainCallForetells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		charge := users("tokens", "tokens", consume("tpm", 0, 20_000))
		charge.Overdraw = true
		e, l := newExplainer(t,
			descriptor.RuleSpec{Name: "admins", Match: []descriptor.MatchSpec{{Key: "user", Value: "admin-*"}}, Unlimited: true},
			users("requests", "", consume("rpm", 0, 1000)), charge)
		s, err := rls.New(rls.Config{Decider: l, Now: e.Now, Options: rls.Options{JSON: rls.JSONOptions{Refunds: true, Charges: true}}})
		if err != nil {
			rt.Fatal(err)
		}
		s.Reload(e.InForce().Rules, nil)
		one := rapid.Custom(func(t *rapid.T) string {
			user := rapid.SampledFrom([]string{"ada", "bob", "admin-1"}).Draw(t, "user")
			hits := rapid.IntRange(0, 6).Draw(t, "hits")
			return descriptorText(user, rapid.SampledFrom([]string{
				"", fmt.Sprintf(`, "hits_addend": "%d"`, hits), fmt.Sprintf(`, "hits_addend": "%d", "is_negative_hits": true`, hits),
				fmt.Sprintf(`, "limit": {"requests_per_unit": %d, "unit": "HOUR"}`, hits),
			}).Draw(t, "more"))
		})
		for range 5 {
			text := callText(rapid.SliceOfN(one, 1, 4).Draw(rt, "call")...)
			var x admin.CallExplanation
			if code := post(rt, e, text, &x); code != http.StatusOK {
				rt.Fatalf("explain of %s: %d", text, code)
			}
			var answer struct {
				OverallCode string `json:"overallCode"`
			}
			post(rt, s.JSONHandler(), text, &answer)
			if admitted := answer.OverallCode == "OK"; admitted != x.Admitted {
				rt.Fatalf("%s: explained %+v, answered %s", text, x, answer.OverallCode)
			}
		}
	})
}

// The explanation equals the answer also where a setting changes all domains of envoyproxy/ratelimit.
func TestExplainModesOfFiles(t *testing.T) {
	const one, two = `{"entries": [{"key": "database", "value": "a"}]}`, `{"entries": [{"key": "other", "value": "a"}]}`
	for name, files := range map[string]rls.FileOptions{"none": {}, "shadow_mode": {Shadow: true}, "quota_mode": {Quota: true}} {
		t.Run(name, func(t *testing.T) {
			e, l := shadowed(t)
			inForce := *e.InForce()
			inForce.Files = files
			e.InForce = func() *admin.InForce { return &inForce }
			s, err := rls.New(rls.Config{Decider: l, Now: e.Now, Options: rls.Options{Files: files}})
			if err != nil {
				t.Fatal(err)
			}
			s.Reload(inForce.Rules, nil)
			var why string
			for i, call := range []string{one, one, one, one, one, one, one + "," + two} {
				body := `{"domain": "mongo_cps", "descriptors": [` + call + `]}`
				var x admin.CallExplanation
				post(t, e, body, &x)
				var answer struct {
					OverallCode string `json:"overallCode"`
				}
				post(t, s.JSONHandler(), body, &answer)
				if (answer.OverallCode == "OK") != x.Admitted {
					t.Errorf("call %d: explained %+v, answered %s", i, x, answer.OverallCode)
				}
				why = x.Why
			}
			alone := ask(t, e, admin.Question{Domain: "mongo_cps", Entries: entries("database", "a")})
			if alone.Admitted != files.Shadow || files.Shadow != strings.HasPrefix(why, "envoyproxy.shadow_mode") || why == "" && !files.Quota {
				t.Errorf("one descriptor: %+v; the call: %s", alone, why)
			}
		})
	}
}

// used is an estimator that knows the use of user/ada.
type used int64

func (u used) Estimate(_, entity, _, _ string) (int64, bool) { return int64(u), entity == "user/ada" }

// A reservation without a number is explained by the estimate that it is made by, alone and in a call.
func TestEstimatesAreExplained(t *testing.T) {
	reserve := users("reserve", "", consume("tpm", 0, 1000))
	reserve.Takes[0].Reserve = true
	reserve.Takes[0].Consume[0].Estimate = &descriptor.EstimateSpec{Min: 10_000, Max: 90_000}
	e, _ := newExplainer(t, reserve)
	e.Estimates = used(30_000)
	for user, want := range map[string]string{"ada": "30", "bob": "90"} {
		var one admin.Explanation
		post(t, e, fmt.Sprintf(`{"domain": "shop", "entries": [{"key": "user", "value": %q}]}`, user), &one)
		var x admin.CallExplanation
		post(t, e, callText(descriptorText(user, "")), &x)
		if got := []string{one.Limits[0].Amount, x.Descriptors[0].Limits[0].Amount}; got[0] != want || got[1] != want {
			t.Errorf("%s: explained with %q, want %s", user, got, want)
		}
	}
}

// The explanation of a denied call has the descriptors that deny it, and the time until it is
// admitted.
func TestExplainCallWhen(t *testing.T) {
	e, l := newExplainer(t, users("requests", "", consume("rpm", 0, 1000)))
	req := &limiter.Request{Takes: []limiter.Take{{Entity: "user/bob", Resource: "api", Consume: []limiter.Consumption{{Limit: "rpm", Amount: 9000}}}}}
	if err := l.Decide(t.Context(), t0, req, new(limiter.Decision)); err != nil {
		t.Fatal(err)
	}
	text := callText(descriptorText("eve", ""), descriptorText("bob", `, "hits_addend": "2"`), descriptorText("bob", ""))
	now := t0
	e.Now = func() time.Time { return now }
	var x admin.CallExplanation
	post(t, e, text, &x)
	if x.Admitted || x.Why != "descriptor 2, 3" || x.RetryAfter != "12s" { // 2 more tokens of 10 a minute
		t.Fatalf("got %+v", x)
	}
	now = t0.Add(12*time.Second - time.Millisecond)
	post(t, e, text, &x)
	if x.Admitted {
		t.Errorf("a millisecond before: %+v", x)
	}
	now, x = t0.Add(12*time.Second), admin.CallExplanation{}
	post(t, e, text, &x)
	if !x.Admitted || x.RetryAfter != "" {
		t.Errorf("at that time: %+v", x)
	}
	x = admin.CallExplanation{}
	if post(t, e, callText(descriptorText("bob", `, "hits_addend": "11"`)), &x); x.RetryAfter != "never" {
		t.Errorf("more than the capacity: %+v", x)
	}
}

// Calls that the service refuses are refused, with the reason.
func TestExplainCallMistakes(t *testing.T) {
	e, _ := newExplainer(t, users("requests", "", consume("rpm", 1000, 0)))
	for body, want := range map[string]string{
		`{"descriptors": []}`:                          "domain is empty",
		`{"domain": "shop", "descriptors": []}`:        "no descriptors",
		`{"domain": "shop", "descriptors": [{"x":1}]}`: `unknown field`,
		`{"domain": "shop", "descriptors": 1}`:         "not a RateLimitRequest in JSON",
		`{"domain": "shop"`:                            "unexpected EOF",
	} {
		var problem api.Problem
		if code := post(t, e, body, &problem); code != http.StatusBadRequest || !strings.Contains(problem.Detail, want) {
			t.Errorf("%s: %d %s, want %s", body, code, problem.Detail, want)
		}
	}
}
