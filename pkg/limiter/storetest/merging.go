package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// mergingPlace is a place that may have limits for one bucket.
type mergingPlace struct {
	ref    limiter.Ref // zero = it is not stored
	source limiter.Source
	limits *limiter.Limits
}

// merging are stored limits at random places, and those that follow from them.
type merging struct {
	decider

	r       *rand.Rand
	records map[limiter.Source]limiter.Record
	own     *limiter.Limits // of a rule or a plan
	plans   map[string]*limiter.Limits
	version uint64             // of the stored entity
	plan    string             // stored; "" = that of the kind
	kinds   [2]*limiter.Limits // of the kind with a plan, and of all entities
}

// checkMerging: limits at random places merge by name. A change of one name leaves each other one as it
// was.
func checkMerging(t T, s limiter.Store) {
	m := merging{decider: newDecider(t, s, time.Minute), r: seeded(7, 1), records: map[limiter.Source]limiter.Record{}}
	m.own = m.limits(limiter.PerDay("a", 1001), limiter.PerDay("b", 1002))
	m.configure()
	for round := range 60 {
		if round%7 == 3 {
			m.changePlan()
		}
		before := m.want(limiter.SourceNone)
		place, name := m.change(int64(round + 1))
		after := m.want(limiter.SourceNone)
		for _, other := range mergingStored() {
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

// places are the places, the most specific one first. The plan of the kind comes after the kind.
func (m *merging) places() []mergingPlace {
	stored := func(ref limiter.Ref, source limiter.Source) mergingPlace {
		return mergingPlace{ref, source, m.records[source].Limits}
	}
	all := []mergingPlace{
		stored(limiter.EntityLimitsRef("e", "r"), limiter.SourceEntity),
		stored(limiter.EntityLimitsRef("e", limiter.DefaultResource), limiter.SourceEntityDefault),
		{source: limiter.SourcePlan, limits: m.plans[m.plan]},
		{source: limiter.SourceKindConfig, limits: m.kinds[0]},
		{source: limiter.SourcePlan},
		{source: limiter.SourceKindConfig, limits: m.kinds[1]},
		stored(limiter.ResourceLimitsRef("r"), limiter.SourceResource),
		stored(limiter.SystemLimitsRef(), limiter.SourceSystem),
	}
	if m.plan == "" {
		all[4].limits = m.plans["free"]
	}
	return all
}

func mergingNames() []string { return []string{"a", "b", "c", "d"} }

// mergingStored are the names that are stored: those in force, and some that are tried beside them.
func mergingStored() []string { return append(mergingNames(), "a.shadow", "c.shadow") }

// configure puts plans and kinds in force. The entity is of two kinds, the first of which has a plan.
func (m *merging) configure() {
	m.plans = map[string]*limiter.Limits{
		"free": m.limits(limiter.PerDay("c", 2001), limiter.PerDay("d", 0)), "pro": m.limits(limiter.PerDay("a", 2002), limiter.PerDay("c", 2003)),
	}
	m.kinds = [...]*limiter.Limits{m.limits(limiter.PerDay("b", 3001)), m.limits(limiter.PerDay("b", 3002), limiter.PerDay("c", 3003), limiter.PerDay("d", 3004))}
	m.setStatic(limiter.Static{Plans: m.plans, Kinds: []limiter.Kind{
		{Limits: map[string]*limiter.Limits{"r": m.limits(limiter.PerDay("c", 3003)), limiter.DefaultResource: m.kinds[1]}},
		{Prefix: "e", Plan: "free", Limits: map[string]*limiter.Limits{limiter.DefaultResource: m.kinds[0]}},
		{Prefix: "other", Plan: "pro", Limits: map[string]*limiter.Limits{"r": m.limits(limiter.PerDay("a", 9))}},
	}})
}

// changePlan stores a plan for the entity. One that the configuration does not have gives no limit; none
// is that of the kind.
func (m *merging) changePlan() {
	m.plan = []string{"", "free", "pro", "unknown"}[m.r.IntN(4)]
	e, err := m.store.PutEntity(m.Context(), at(0), limiter.DefaultNamespace, limiter.Entity{ID: "e", Plan: m.plan, Version: m.version})
	if err != nil {
		m.Fatalf("PutEntity: %v", err)
	}
	m.version = e.Version
	m.limiter.InvalidateCache()
}

// change sets or deletes one limit at one stored place.
func (m *merging) change(n int64) (limiter.Source, string) {
	stored := slices.DeleteFunc(m.places(), func(p mergingPlace) bool { return p.ref == limiter.Ref{} })
	place := stored[m.r.IntN(len(stored))]
	name := mergingStored()[m.r.IntN(len(mergingStored()))]
	old := m.records[place.source]
	var limits []limiter.Limit
	for i := range old.Limits.Len() {
		if l := old.Limits.At(i); l.Name != name {
			limits = append(limits, l)
		}
	}
	if m.r.IntN(3) > 0 {
		limits = append(limits, limiter.PerDay(name, n*int64(m.r.IntN(4)))) // a rate of 0 now and then
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
	for _, place := range m.places() {
		if owns && place.source >= own {
			find(m.own, own)
			owns = false
		}
		find(place.limits, place.source)
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
	m.checkTried(own, t)
}

// checkTried asks by the limits that are tried. For a name of the take's own limits they are of the places
// before those, and for another name of all places.
func (m *merging) checkTried(own limiter.Source, t limiter.Take) {
	m.Helper()
	t.Tried, t.Consume = true, nil
	want, all := map[string]string{}, m.want(own)
	for _, name := range mergingNames() {
		tried := all[limiter.ShadowName(name)]
		if own != limiter.SourceNone && m.own.Find(name) >= 0 {
			tried = ""
			for _, place := range m.places() {
				if i := place.limits.Find(limiter.ShadowName(name)); i >= 0 && place.source < own && tried == "" {
					tried = fmt.Sprint(place.limits.At(i), " ", place.source)
				}
			}
		}
		t.Consume = append(t.Consume, limiter.Consumption{Limit: name})
		if tried != "" {
			want[name] = tried
		}
	}
	if len(want) > 0 {
		m.await(func() string { return m.compare(want, t) })
		return
	}
	if d := m.peek(t); !d.Admitted || len(d.Statuses) > 0 {
		m.Errorf("own limits of %v: %+v are tried, want none", own, d.Statuses)
	}
}

// checkTake peeks at limits, until the bucket is under them. Those with a rate of 0 deny without the store.
func (m *merging) checkTake(want map[string]string, own limiter.Source, t limiter.Take, of ...limiter.Consumption) {
	m.Helper()
	t.Consume = of
	if len(of) > 1 || want[of[0].Limit] != "" {
		m.await(func() string { return m.compare(want, t) })
		return
	}
	if d := m.peek(t); d.Reason != limiter.ReasonNotConfigured {
		m.Errorf("own limits of %v: %s is admitted %t, %v; it is nowhere", own, of[0].Limit, d.Admitted, d.Reason)
	}
}

// await calls f until it returns no mistake, as the bucket is under new limits soon.
func (m *merging) await(f func() string) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), reach)
	defer cancel()
	for {
		mistake := f()
		if mistake == "" {
			return
		}
		if ctx.Err() != nil {
			m.Errorf("%s", mistake)
			return
		}
	}
}

// compare peeks at limits, and returns the differences. One with a rate of 0 denies without the store.
func (m *merging) compare(want map[string]string, t limiter.Take) string {
	d := m.peek(t)
	got, all := make([]string, 0, len(d.Statuses)), []string{}
	for _, s := range d.Statuses {
		got = append(got, s.Limit.Name+" "+fmt.Sprint(*s.Limit, " ", s.Source))
	}
	zero := slices.ContainsFunc(t.Consume, func(c limiter.Consumption) bool { return isZero(want[c.Limit]) })
	for _, c := range t.Consume {
		if is := want[c.Limit]; is != "" && isZero(is) == zero {
			all = append(all, c.Limit+" "+is)
		}
	}
	slices.Sort(got)
	if denied := d.Reason == limiter.ReasonExceedsCapacity; denied != zero || !slices.Equal(got, all) {
		return fmt.Sprintf("own limits %v of %q, tried %t: got %q, %v; want %q", t.Limits.Len() > 0, t.LimitsOf, t.Tried, got, d.Reason, all)
	}
	return ""
}

// isZero reports whether a limit, as want writes it, has a rate of 0.
func isZero(limit string) bool { return strings.HasPrefix(limit, "0/") }

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
