package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestLease(t *testing.T) {
	const rule = `
store: {type: dynamodb}
limits: {system: {rpm: 1/minute}}
domains:
- domain: a
  rules:
  - {match: {a: "*"}, entity: "{a}", resource: r, consume: {rpm: 1}`
	for _, tt := range []struct {
		lease string
		want  limiter.LeasePolicy
	}{
		{"", limiter.LeasePolicy{}},
		{", lease: auto", limiter.LeasePolicy{}},
		{", lease: none", limiter.LeasePolicy{None: true}},
		{`, lease: "none"`, limiter.LeasePolicy{None: true}},
		{", lease: {max: 5000, for: 500ms}", limiter.LeasePolicy{Max: 5_000_000, For: 500 * time.Millisecond}},
		{", lease: {max: 2.5}", limiter.LeasePolicy{Max: 2500}},
		{", lease: {max: 1_000_000_000_000}", limiter.LeasePolicy{Max: 1e15}},
		{", lease: {for: 10ms}", limiter.LeasePolicy{For: 10 * time.Millisecond}},
		{", lease: {for: 1s}", limiter.LeasePolicy{For: time.Second}},
	} {
		c := parse(t, rule+tt.lease+"}\n")
		if got := c.Rules.Domains()[0].Rules()[0].Lease(); got != tt.want || len(c.Warnings) > 0 {
			t.Errorf("%q: got %+v, want %+v; warnings %v", tt.lease, got, tt.want, c.Warnings)
		}
	}
}

// Bounds of leases are most likely a mistake where the store has no leases. A rule without leases
// is right there.
func TestLeasesOfTheEmbeddedStore(t *testing.T) {
	const text = `
limits: {system: {rpm: 1/minute}}
domains:
- domain: a
  rules:
  - {match: {a: "*"}, entity: "a/{a}", resource: r, consume: {rpm: 1}, lease: none}
  - {match: {b: "*"}, entity: "b/{b}", resource: r, consume: {rpm: 1}, lease: {max: 5000}}
  - {match: {c: "*"}, entity: "c/{c}", resource: r, consume: {rpm: 1}, lease: auto}
`
	want := "test.yaml:7: warning: domains[0].rules[1].lease: is not used: the store embedded decides in memory, and leases nothing"
	if diff := cmp.Diff(want, parse(t, text).Warnings.Error()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
