package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// named returns n limits, of names that begin with a letter.
func named(t *testing.T, letter string, n int) *limiter.Limits {
	t.Helper()
	all := make([]limiter.Limit, n)
	for i := range all {
		all[i] = limiter.PerDay(fmt.Sprintf("%s%02d", letter, i), 1)
	}
	return set(t, all...)
}

// joint returns the limits of several sets.
func joint(t *testing.T, sets ...*limiter.Limits) *limiter.Limits {
	t.Helper()
	var all []limiter.Limit
	for _, s := range sets {
		for i := range s.Len() {
			all = append(all, s.At(i))
		}
	}
	return set(t, all...)
}

// dropsOf writes limits with their places.
func dropsOf(all []limiter.EffectiveLimit) []string {
	out := make([]string, 0, len(all))
	for _, l := range all {
		out = append(out, l.Limit.Name+" of "+l.Source.String())
	}
	return out
}

// A bucket has 16 limits. The names of the least specific place are dropped, and dropped limits are told.
func TestDroppedLimits(t *testing.T) {
	kinds := func(k ...limiter.Kind) limiter.Static { return limiter.Static{Kinds: k} }
	kind := func(prefix, plan string, l *limiter.Limits) limiter.Kind {
		return limiter.Kind{Prefix: prefix, Plan: plan, Limits: map[string]*limiter.Limits{limiter.DefaultResource: l}}
	}
	for name, test := range map[string]struct {
		static limiter.Static
		plan   string
		stored limiter.Record // of the entity and the resource
		want   []string
	}{
		"room":           {static: limiter.Static{System: named(t, "s", 15)}, stored: limiter.Record{Limits: named(t, "e", 1)}},
		"the 17th":       {static: limiter.Static{System: named(t, "s", 16)}, stored: limiter.Record{Limits: named(t, "e", 1)}, want: []string{"s15 of system (file)"}},
		"the same names": {static: limiter.Static{System: named(t, "s", 16)}, stored: limiter.Record{Limits: named(t, "s", 3)}},
		"alone":          {static: limiter.Static{System: named(t, "s", 16)}, stored: limiter.Record{Limits: named(t, "e", 1), Alone: true}},
		"one in flight": {
			static: limiter.Static{System: named(t, "s", 15)}, stored: limiter.Record{Limits: set(t, limiter.Concurrent("slots", 5, time.Minute))},
		},
		"tried beside": {static: limiter.Static{System: named(t, "s", 16)}, stored: limiter.Record{Limits: set(t, limiter.PerDay("x.shadow", 1))}},
		"of a plan": {
			static: limiter.Static{Plans: map[string]*limiter.Limits{"pro": named(t, "p", 9)}, System: named(t, "s", 8)}, plan: "pro",
			want: []string{"s07 of system (file)"},
		},
		"kinds": {
			static: kinds(kind("e", "", named(t, "a", 9)), kind("", "", named(t, "b", 9))),
			want:   []string{"b07 of kind (file)", "b08 of kind (file)"},
		},
		"kinds with shadow limits": {
			static: kinds(kind("e", "", joint(t, named(t, "a", 9), set(t, limiter.PerDay("x.shadow", 1)))), kind("", "", named(t, "b", 7))),
			want:   []string{"b06 of kind (file)"},
		},
		"kinds, where the entity has the name": {
			static: kinds(kind("e", "", named(t, "a", 9)), kind("", "", named(t, "b", 8))), stored: limiter.Record{Limits: set(t, limiter.PerDay("b07", 9))},
			want: []string{"b06 of kind (file)"},
		},
		"kinds below one that is alone": {
			static: kinds(kind("e", "", named(t, "a", 9)), kind("", "", named(t, "b", 9))), stored: limiter.Record{Limits: named(t, "e", 1), Alone: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := limiter.NewSnapshot(test.static)
			if err != nil {
				t.Fatal(err)
			}
			got := snapshot.Dropped("e", "r", []limiter.Stored{
				{Ref: limiter.EntityRef("e"), Record: limiter.Record{Entity: &limiter.Entity{ID: "e", Plan: test.plan}}},
				{Ref: limiter.EntityLimitsRef("e", "r"), Record: test.stored},
				{Ref: limiter.EntityLimitsRef("other", "r"), Record: limiter.Record{Limits: named(t, "o", 16)}},
			}...)
			if diff := cmp.Diff(append([]string{}, test.want...), dropsOf(got)); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}
