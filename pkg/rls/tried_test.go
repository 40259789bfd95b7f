package rls_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// tried has a service with a limit in force, and a lower one that is tried, of requests and of tokens.
func tried(t *testing.T) (*env, *embedded.Store, *[]rls.Observation) {
	t.Helper()
	store := embedded.New(embedded.Config{SweepInterval: time.Hour}) // not by the clock of the machine
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	system := limits(t, limiter.PerDay("rpm", 10), limiter.PerDay("rpm.shadow", 2), limiter.PerDay("tpm", 1000), limiter.PerDay("tpm.shadow", 100))
	if err := l.SetStatic(t.Context(), limiter.Static{System: system}); err != nil {
		t.Fatal(err)
	}
	books, err := reservation.NewLedger(reservation.LedgerConfig{Limiter: l, Local: true})
	if err != nil {
		t.Fatal(err)
	}
	var seen []rls.Observation
	e := newEnv(t, func(c *rls.Config) {
		c.Decider, c.Settler, c.Keyring, c.Lifetime = books, books, keyring(t, key(1)), 10*time.Minute
		c.Observe = func(_ time.Time, o rls.Observation) {
			if o.Shadow {
				seen = append(seen, o)
			}
		}
	})
	reserved := takes("{key}", "gpt", nil, "tpm")
	reserved[0].Reserve = true
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Domain: "llm", Rules: []descriptor.RuleSpec{
		{Name: "requests", Match: match("user", "*"), Takes: takes("{user}", "api", nil, "rpm")},
		{Name: "reserve", Match: match("key", "*"), Takes: reserved},
		{Name: "settle", Match: match("reservation_id", "*"), Settle: []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: limiter.Milli}}},
	}}}), nil)
	t.Cleanup(func() {
		if err := books.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, store, &seen
}

// A limit that is tried denies nothing. Metadata and observations name it, and it adds nothing to usage.
func TestTriedLimits(t *testing.T) {
	e, store, seen := tried(t)
	for i := range 12 {
		got := e.call(t, "llm", descriptorJSON(addend(1), "user", "ada"))
		if denied := got.GetOverallCode() != 1; denied != (i >= 10) {
			t.Fatalf("call %d: denied %t", i+1, denied)
		}
		shadows := got.GetDynamicMetadata().GetFields()["shadow"].GetListValue().GetValues()
		named := make([]string, 0, len(shadows))
		for _, v := range shadows {
			f := v.GetStructValue().GetFields()
			named = append(named, f["rule"].GetStringValue()+" "+f["limit"].GetStringValue())
		}
		want := []string{}
		if i >= 2 && i < 10 {
			want = []string{"requests rpm.shadow"}
		}
		if diff := cmp.Diff(want, named); diff != "" {
			t.Errorf("call %d: shadow limits (-want +got):\n%s", i+1, diff)
		}
	}
	want := rls.Observation{Namespace: limiter.DefaultNamespace, Entity: "ada", Resource: "api", Limit: "rpm.shadow", Amount: limiter.Milli, Denied: true, Shadow: true}
	if len(*seen) != 8 || (*seen)[0] != want {
		t.Errorf("observed %d times, %+v; want 8 times %+v", len(*seen), *seen, want)
	}
	usage, err := store.ListUsage(t.Context(), limiter.DefaultNamespace, limiter.UsageFilter{}, limiter.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage.Items {
		if diff := cmp.Diff([]limiter.LimitUsage{{Limit: "rpm", Tokens: 10 * limiter.Milli}}, u.Limits); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	}
}

// A settlement corrects what is reserved of a limit that is tried.
func TestTriedReservations(t *testing.T) {
	e, _, _ := tried(t)
	for i := range 5 {
		got := e.call(t, "llm", descriptorJSON(addend(60), "key", "k"))
		fields := got.GetDynamicMetadata().GetFields()
		if shadow := fields["shadow"]; shadow != nil {
			t.Errorf("reservation %d: %v would be denied; earlier ones were settled to 1 each", i+1, shadow)
		}
		if result := e.settle(t, "llm", addend(1), fields["reservation_id"].GetStringValue()); result != "settled" {
			t.Errorf("settlement %d: got %s", i+1, result)
		}
	}
	if got := e.call(t, "llm", descriptorJSON(addend(60), "key", "k")); got.GetDynamicMetadata().GetFields()["shadow"] != nil {
		t.Error("60 of 95 would be denied")
	}
	if got := e.call(t, "llm", descriptorJSON(addend(60), "key", "k")); got.GetDynamicMetadata().GetFields()["shadow"] == nil {
		t.Error("60 of 35 would be admitted")
	}
}

// So it corrects what a rule in shadow mode reserves.
func TestReservationsOfAShadowRule(t *testing.T) {
	e, _, _ := tried(t)
	reserve := func(tokens int64) []descriptor.TakeSpec {
		of := takes("{key}", "gpt", limits(t, limiter.PerDay("tpm", tokens)), "tpm")
		of[0].Reserve = true
		return of
	}
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Domain: "llm", Rules: []descriptor.RuleSpec{
		{Name: "trial", Match: match("key", "*"), Takes: reserve(100), Shadow: true},
		{Name: "reserve", Match: match("key", "*"), Takes: reserve(1000)},
		{Name: "settle", Match: match("reservation_id", "*"), Settle: []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: limiter.Milli}}},
	}}}), nil)
	for i := range 5 {
		fields := e.call(t, "llm", descriptorJSON(addend(60), "key", "k")).GetDynamicMetadata().GetFields()
		if shadow := fields["shadow"]; shadow != nil {
			t.Errorf("reservation %d: %v would be denied; earlier ones were settled to 1 each", i+1, shadow)
		}
		if result := e.settle(t, "llm", addend(1), fields["reservation_id"].GetStringValue()); result != "settled" {
			t.Errorf("settlement %d: got %s", i+1, result)
		}
	}
}
