package rls_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// A call that takes from a disabled subject is denied at once. The answer names the subject and no
// time. Charges are booked.
func TestDisabled(t *testing.T) {
	clock := newClock()
	store := embedded.New(embedded.Config{Now: clock.now})
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, func(c *rls.Config) { c.Now, c.Decider = clock.now, l })
	e.clock = clock
	flip := func(ref limiter.Ref, s limiter.Switch) {
		t.Helper()
		if _, err := store.Edit(t.Context(), clock.now(), limiter.DefaultNamespace, limiter.Edit{Ref: ref, Switch: s}); err != nil {
			t.Fatal(err)
		}
	}
	call := fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s,%s]}`, descriptorJSON(``, "two", "b"),
		descriptorJSON(``, "api_key", "a", "model", "m"), descriptorJSON(`"hitsAddend":"100"`, "api_key", "a", "model", "m", "meter", "tokens"))
	denied := func(first, metadata string) string {
		return `{"overallCode":"OVER_LIMIT","statuses":[{"code":"` + first + `"},{"code":"OVER_LIMIT"},{"code":"OK"}],
			"dynamicMetadata":{"reason":"disabled","domain":"llm",` + metadata + `}}`
	}
	for _, test := range []struct {
		ref  limiter.Ref
		want string
	}{
		{limiter.EntityRef("key/a"), denied("OK", `"rule":"requests","disabled":"entity","entity":"key/a","level":0`)},
		{limiter.ResourceLimitsRef("m"), denied("OK", `"rule":"requests","disabled":"resource","resource":"m"`)},
		{limiter.SystemLimitsRef(), denied("OVER_LIMIT", `"rule":"two","disabled":"namespace","namespace":"default"`)},
	} {
		flip(test.ref, limiter.Disable)
		e.run(t, []step{{ask: call, want: test.want}, {after: time.Hour, ask: descriptor1(``, "exempt", "x"), want: exempt(test.ref)}})
		flip(test.ref, limiter.Enable)
	}
	e.run(t, []step{
		{ask: descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m"), want: ok("rpm", 10, 10, "0s")},
		{ask: call, want: `{"overallCode":"OK","statuses":[
			{"code":"OK","currentLimit":{"name":"rps","requestsPerUnit":5,"unit":"SECOND"},"limitRemaining":4,"durationUntilReset":"1s"},
			{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":9,"durationUntilReset":"6s"},
			{"code":"OK","currentLimit":{"name":"tpm","requestsPerUnit":1000,"unit":"MINUTE"},"limitRemaining":900,"durationUntilReset":"6s"}]}`},
	})
	got := series(t, e.registry)
	for name, want := range map[string]float64{
		`ratelimit_denials_total{domain="llm",limit="",reason="disabled",rule="requests"}`:  3,
		`ratelimit_denials_total{domain="llm",limit="",reason="disabled",rule="two"}`:       1,
		`ratelimit_charges_total{domain="llm",kind="charge",result="booked",rule="tokens"}`: 4,
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// exempt is the answer to a call of an unlimited entity while ref is disabled.
func exempt(ref limiter.Ref) string {
	if ref != limiter.SystemLimitsRef() {
		return `{"overallCode":"OK","statuses":[{"code":"OK","limitRemaining":4294967295}]}`
	}
	return `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],
		"dynamicMetadata":{"reason":"disabled","domain":"llm","rule":"exempt","disabled":"namespace","namespace":"default"}}`
}
