package rls_test

import (
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// flying are rules with 2 requests in flight for each user, and 2 jobs, which reserve their slots.
func flying(tb testing.TB) []descriptor.DomainSpec {
	tb.Helper()
	own := limits(tb, limiter.Concurrent("slots", 2, 10*time.Minute), limiter.PerDay("tpm", 1000))
	reserved := takes("user/{user}", "r", own, "tpm")
	reserved[0].Reserve = true
	jobs := takes("user/{user}", "jobs", own, "slots")
	jobs[0].Reserve = true
	return []descriptor.DomainSpec{{Domain: "llm", Rules: []descriptor.RuleSpec{
		{Name: "end", Match: match("user", "*", "reservation_id", "*"), End: true},
		{Name: "settle", Match: match("reservation_id", "*"), Settle: []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: limiter.Milli}}},
		{Name: "start", Match: match("user", "*"), Takes: takes("user/{user}", "r", own, "slots")},
		{Name: "jobs", Match: match("user", "*", "kind", "job"), Takes: jobs},
		{Name: "tokens", Match: match("user", "*", "kind", "tokens"), Takes: append(takes("user/{user}", "r", own, "slots"), reserved...)},
	}}}
}

// start begins a request of a user, and returns the id of its end; "" if it is denied.
func (e *env) start(t *testing.T, pairs ...string) string {
	t.Helper()
	got := e.call(t, "llm", descriptorJSON(addend(1), append([]string{"user", "ada"}, pairs...)...))
	id := got.GetDynamicMetadata().GetFields()["reservation_id"].GetStringValue()
	if admitted := got.GetOverallCode() == rlsv3.RateLimitResponse_OK; admitted != (id != "") {
		t.Errorf("admitted: %t, with the reservation %q", admitted, id)
	}
	return id
}

// end ends a request by a rule, and returns the result.
func (e *env) end(t *testing.T, rule, id string) string {
	t.Helper()
	pairs := []string{"reservation_id", id}
	if rule == "end" {
		pairs = append(pairs, "user", "ada")
	}
	got := e.call(t, "llm", descriptorJSON(addend(100), pairs...))
	return got.GetDynamicMetadata().GetFields()["settlements"].GetListValue().GetValues()[0].GetStructValue().GetFields()["result"].GetStringValue()
}

// A request that ends gives back its slot, once, whether it reserved the slot, another limit or nothing.
func TestInFlight(t *testing.T) {
	for _, kind := range [][]string{nil, {"kind", "job"}, {"kind", "tokens"}} {
		for _, rule := range []string{"end", "settle"} {
			e := replicas(t, 1)[0]
			e.service.Reload(compile(t, flying(t)), nil)
			first := e.start(t, kind...)
			if second := e.start(t, kind...); first == "" || second == "" || e.start(t, kind...) != "" {
				t.Fatalf("%v: want 2 in flight", kind)
			}
			for i, want := range []string{"settled", "repeated"} {
				if got := e.end(t, rule, first); got != want {
					t.Errorf("%v: end %d by rule %s: got %q, want %q", kind, i, rule, got, want)
				}
			}
			if e.start(t, kind...) == "" {
				t.Errorf("%v: the end by rule %s gave nothing back", kind, rule)
			}
			if e.start(t, kind...) != "" {
				t.Errorf("%v: the end by rule %s gave back two", kind, rule)
			}
		}
	}
}

// A request without an end counts for its longest time, and not for twice that time, in each quarter of a window.
func TestInFlightWithoutEnd(t *testing.T) {
	for quarter := range 4 {
		e := replicas(t, 1)[0]
		e.service.Reload(compile(t, flying(t)), nil)
		e.clock.advance(time.Minute + time.Duration(quarter)*10*time.Minute)
		first := e.start(t)
		e.start(t)
		e.clock.advance(10 * time.Minute)
		if e.start(t) != "" {
			t.Errorf("begun in quarter %d: 3 in flight within the longest time", quarter)
		}
		e.clock.advance(10 * time.Minute)
		for i, admitted := range []bool{true, true, false} {
			if got := e.start(t) != ""; got != admitted {
				t.Errorf("begun in quarter %d: request %d after twice the longest time: admitted %t, want %t", quarter, i, got, admitted)
			}
		}
		if got := e.end(t, "end", first); got != "expired" {
			t.Errorf("begun in quarter %d: an end after twice the longest time: got %q, want expired", quarter, got)
		}
		if e.start(t) != "" {
			t.Errorf("begun in quarter %d: an end of a request whose time is over gave something back", quarter)
		}
	}
}
