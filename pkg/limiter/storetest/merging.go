package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// mergingPlaces are the records that may have limits for one bucket, the most specific one first.
func mergingPlaces() []mergingPlace {
	return []mergingPlace{
		{limiter.EntityLimitsRef("e", "r"), limiter.SourceEntity},
		{limiter.EntityLimitsRef("e", limiter.DefaultResource), limiter.SourceEntityDefault},
		{limiter.ResourceLimitsRef("r"), limiter.SourceResource},
		{limiter.SystemLimitsRef(), limiter.SourceSystem},
	}
}

type mergingPlace struct {
	ref    limiter.Ref
	source limiter.Source
}

// merging are stored limits at random places, and those that follow from them.
type merging struct {
	decider

	r       *rand.Rand
	records map[limiter.Source]limiter.Record
	own     *limiter.Limits // of a rule or a plan
}

// checkMerging: limits at random places merge by name. A change of one name leaves each other one as it
// was.
func checkMerging(t T, s limiter.Store) {
	m := merging{decider: newDecider(t, s, time.Minute), r: seeded(7, 1), records: map[limiter.Source]limiter.Record{}}
	m.own = m.limits(limiter.PerDay("a", 1001), limiter.PerDay("b", 1002))
	for round := range 60 {
		before := m.want(limiter.SourceNone)
		place, name := m.change(int64(round + 1))
		after := m.want(limiter.SourceNone)
		for _, other := range mergingNames() {
			if other != name && before[other] != after[other] {
				t.Fatalf("the oracle is wrong: a change of %s at %v changed %s", name, place, other)
			}
		}
		m.limiter.InvalidateCache()
		m.check(limiter.SourceNone, nil)
		m.check(limiter.SourceRule, m.own)
		m.check(limiter.SourcePlan, m.own)
		if t.Failed() {
			t.Fatalf("after %d changes", round+1)
		}
	}
}

func mergingNames() []string { return []string{"a", "b", "c", "d"} }

// change sets or deletes one limit at one place.
func (m *merging) change(n int64) (limiter.Source, string) {
	place := mergingPlaces()[m.r.IntN(len(mergingPlaces()))]
	name := mergingNames()[m.r.IntN(len(mergingNames()))]
	old := m.records[place.source]
	var limits []limiter.Limit
	for i := range old.Limits.Len() {
		if l := old.Limits.At(i); l.Name != name {
			limits = append(limits, l)
		}
	}
	if m.r.IntN(3) > 0 {
		limits = append(limits, limiter.PerDay(name, n))
	}
	record := limiter.Record{Limits: m.limits(limits...)}
	m.records[place.source] = record
	if err := m.store.PutLimits(m.Context(), limiter.DefaultNamespace, place.ref, record); err != nil {
		m.Fatalf("PutLimits: %v", err)
	}
	return place.source, name
}

// want returns the limits by name, with their sources. own is the origin of a take's own limits, none
// for the ordinary bucket.
func (m *merging) want(own limiter.Source) map[string]string {
	want := make(map[string]string)
	find := func(limits *limiter.Limits, source limiter.Source) {
		for i := range limits.Len() {
			l := limits.At(i)
			if _, found := want[l.Name]; !found {
				want[l.Name] = fmt.Sprint(l, " ", source)
			}
		}
	}
	owns := own != limiter.SourceNone
	for _, place := range mergingPlaces() {
		if owns && place.source > own {
			find(m.own, own)
			owns = false
		}
		find(m.records[place.source].Limits, place.source)
	}
	return want
}

// check asks for each name alone, and for all of them at once.
func (m *merging) check(own limiter.Source, limits *limiter.Limits) {
	m.Helper()
	want := m.want(own)
	if own == limiter.SourceNone {
		m.checkEffective(want)
	}
	t := limiter.Take{Entity: "e", Resource: "r", Limits: limits, LimitsOf: fmt.Sprint(own)}
	if own == limiter.SourcePlan {
		t.LimitsBy = limiter.ByPlan
	}
	for _, name := range mergingNames() {
		if _, found := want[name]; found {
			t.Consume = append(t.Consume, limiter.Consumption{Limit: name})
		}
		m.checkTake(want, own, t, limiter.Consumption{Limit: name})
	}
	if len(t.Consume) > 0 {
		m.checkTake(want, own, t, t.Consume...)
	}
}

// checkTake peeks at limits, until the bucket is under them.
func (m *merging) checkTake(want map[string]string, own limiter.Source, t limiter.Take, of ...limiter.Consumption) {
	m.Helper()
	t.Consume = of
	ctx, cancel := context.WithTimeout(m.Context(), reach)
	defer cancel()
	var got, all []string
	for len(of) > 1 || want[of[0].Limit] != "" {
		d := m.peek(t)
		got, all = got[:0], all[:0]
		for _, s := range d.Statuses {
			got = append(got, s.Limit.Name+" "+fmt.Sprint(*s.Limit, " ", s.Source))
		}
		for _, c := range of {
			all = append(all, c.Limit+" "+want[c.Limit])
		}
		slices.Sort(got)
		if slices.Equal(got, all) {
			return
		}
		if ctx.Err() != nil {
			m.Errorf("own limits of %v: got %q, want %q", own, got, all)
			return
		}
	}
	if d := m.peek(t); d.Reason != limiter.ReasonNotConfigured {
		m.Errorf("own limits of %v: %s is admitted %t, %v; it is nowhere", own, of[0].Limit, d.Admitted, d.Reason)
	}
}

func (m *merging) peek(t limiter.Take) *limiter.Decision {
	m.Helper()
	var d limiter.Decision
	if err := m.limiter.Decide(m.Context(), at(0), &limiter.Request{Takes: []limiter.Take{t}, OnUnavailable: limiter.Deny}, &d); err != nil {
		m.Fatalf("Decide: %v", err)
	}
	return &d
}

// checkEffective compares the limits that people see.
func (m *merging) checkEffective(want map[string]string) {
	m.Helper()
	effective, err := m.limiter.Effective(m.Context(), at(0), limiter.DefaultNamespace, "e", "r")
	if err != nil {
		m.Fatalf("Effective: %v", err)
	}
	if len(effective) != len(want) {
		m.Errorf("%d limits are effective, want %d", len(effective), len(want))
	}
	for _, l := range effective {
		if got := fmt.Sprint(l.Limit, " ", l.Source); got != want[l.Limit.Name] {
			m.Errorf("effective: %s is %s, want %s", l.Limit.Name, got, want[l.Limit.Name])
		}
	}
}
