package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// UsageStore is a store whose usage operators can read.
type UsageStore struct {
	limiter.Usage

	// Consume makes a bucket consume millitokens of limits at a time; below zero = refund. It is
	// recorded alone, and the usage that the store lists after it includes it. Calls are in order
	// of time, in the autumn of 2036: nothing of it has expired.
	Consume func(t *testing.T, at time.Time, bucket limiter.BucketKey, amounts map[string]int64)

	// Store decides, and the usage that is listed after a decision includes it; nil = the usage of
	// decisions is not checked.
	Store limiter.Store
}

// RunUsage tests the stores that open returns against the contract of limiter.Usage, each case with
// a fresh store.
func RunUsage(t *testing.T, open func(t *testing.T) UsageStore) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s UsageStore)
	}{
		{"usage/listed", checkUsageListed},
		{"usage/in order", checkUsageInOrder},
		{"usage/any name", checkUsageNames},
		{"usage/refused", checkUsageRefused},
		{"usage/of decisions", checkUsageOfDecisions},
		{"usage/of reservations", checkUsageOfReservations},
		{"usage/of late decisions", checkUsageOfLateDecisions},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// Consume makes a bucket consume millitokens of limits by charges, and below zero refunds them.
func Consume(t *testing.T, s limiter.Store, at time.Time, bucket limiter.BucketKey, amounts map[string]int64) {
	t.Helper()
	op := limiter.Op{Bucket: bucket, Generation: 1}
	all := make([]limiter.Limit, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		all = append(all, limiter.PerDay(name, 1_000_000))
		op.Spends = append(op.Spends, limiter.Spend{Limit: name, Charge: max(amounts[name], 0), Refund: max(-amounts[name], 0)})
	}
	var err error
	op.Limits, err = limiter.NewLimits(all...)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Take(t.Context(), at, []limiter.Op{op}); err != nil || !ok {
		t.Fatalf("a charge: %t, %v", ok, err)
	}
}

// consumption is one consumption of a history.
type consumption struct {
	at      time.Time
	bucket  limiter.BucketKey
	amounts map[string]int64
}

// usageBegin is a time in the last minute of a month, so that a history crosses all windows.
func usageBegin() time.Time { return time.Date(2036, 10, 31, 22, 59, 30, 0, time.UTC) }

// usageHistory is of three entities and two resources over three hours of two days and months.
func usageHistory() (all []consumption) {
	for i := range 48 {
		c := consumption{
			at:      usageBegin().Add(time.Duration(i/6) * 30 * time.Minute),
			bucket:  limiter.BucketKey{Namespace: "ns", Entity: fmt.Sprint("e", i%3), Resource: fmt.Sprint("r", i/3%2)},
			amounts: map[string]int64{"rpm": tokens(1), "tpm": int64(100 + i)},
		}
		switch {
		case i%7 == 3:
			c.amounts["tpm"] = -int64(i)
		case i%5 == 0:
			delete(c.amounts, "rpm")
		case i%11 == 0:
			c.bucket.Variant = 5
		}
		all = append(all, c)
		if i%4 == 0 { // a rule in shadow mode takes as much in addition
			c.bucket.Variant = limiter.ShadowVariants + 5
			all = append(all, c)
		}
		if i%6 == 1 { // a quota, and a budget that denies
			month := limiter.UsageMonth.Start(c.at)
			c.bucket.Variant, c.bucket.Window = 0, limiter.Window{Start: month.Unix(), End: limiter.UsageMonth.End(month).Unix(), Calendar: 7}
			c.amounts = map[string]int64{"exports": tokens(2), "usd.month": tokens(3)}
			all = append(all, c)
		}
	}
	other := all[0]
	other.bucket.Namespace = "other"
	return append(all, other)
}

// wantUsage returns the snapshots of a history that a filter selects, as text, in no order.
func wantUsage(history []consumption, f limiter.UsageFilter) []string {
	type key struct {
		entity, resource string
		start            time.Time
	}
	sums := map[key]map[string]int64{}
	events := map[key]int64{}
	for _, c := range history {
		k := key{c.bucket.Entity, c.bucket.Resource, f.Window.Start(c.at)}
		if c.bucket.Namespace != "ns" || f.Entity != "" && k.entity != f.Entity || f.Resource != "" && k.resource != f.Resource || !f.Selects(k.start) {
			continue
		}
		counted := int64(0)
		for limit, n := range c.amounts {
			if c.bucket.Uncounted(limit) {
				continue
			}
			if sums[k] == nil {
				sums[k] = map[string]int64{}
			}
			sums[k][limit] += n
			counted = 1
		}
		events[k] += counted
	}
	all := make([]string, 0, len(sums))
	for k, limits := range sums {
		u := limiter.UsageSnapshot{Entity: k.entity, Resource: k.resource, Window: f.Window, Start: k.start, Events: events[k]}
		for _, limit := range slices.Sorted(maps.Keys(limits)) {
			u.Limits = append(u.Limits, limiter.LimitUsage{Limit: limit, Tokens: limits[limit]})
		}
		all = append(all, usageText(u))
	}
	return all
}

func usageText(u limiter.UsageSnapshot) string {
	return fmt.Sprintf("%q %q %v %v %+v %d", u.Entity, u.Resource, u.Window, u.Start, u.Limits, u.Events)
}

// list returns all snapshots of "ns", in pages of a size.
func (s UsageStore) list(t *testing.T, size int, f limiter.UsageFilter) []limiter.UsageSnapshot {
	t.Helper()
	return all(t, size, func(p limiter.Page) (limiter.PageOf[limiter.UsageSnapshot], error) {
		return s.ListUsage(t.Context(), "ns", f, p)
	})
}

// usageFilters are combinations of entity, resource, window and time.
func usageFilters() (all []limiter.UsageFilter) {
	begin := limiter.UsageHour.Start(usageBegin())
	for _, w := range limiter.UsageWindows() {
		for _, entity := range []string{"", "e1"} {
			for _, resource := range []string{"", "r1"} {
				for _, span := range [][2]time.Time{{}, {begin.Add(time.Hour)}, {{}, begin.Add(2 * time.Hour)}, {begin, begin.Add(time.Hour)}} {
					all = append(all, limiter.UsageFilter{Entity: entity, Resource: resource, Window: w, From: span[0], To: span[1]})
				}
			}
		}
	}
	return append(all, limiter.UsageFilter{Entity: "none"}, limiter.UsageFilter{Resource: "none"}, limiter.UsageFilter{From: begin, To: begin})
}

// checkUsageListed: for each filter and size of a page, each snapshot is on one page. It has the
// net sum of its window, and the number of events.
func checkUsageListed(t *testing.T, s UsageStore) {
	history := usageHistory()
	for _, c := range history {
		s.Consume(t, c.at, c.bucket, c.amounts)
	}
	for _, f := range usageFilters() {
		for _, size := range []int{1, 5, limiter.MaxPage} {
			if size == 1 && (f.Entity == "" || f.Resource == "") || size == 5 && !f.To.IsZero() {
				continue // shows no more than the others
			}
			found := s.list(t, size, f)
			got := make([]string, 0, len(found))
			for _, u := range found {
				got = append(got, usageText(u))
			}
			wantSame(t, fmt.Sprintf("%+v, pages of %d", f, size), wantUsage(history, f), got)
		}
	}
}

// checkUsageInOrder: the snapshots of one entity and resource are in order of their start, and their limits in order of names.
func checkUsageInOrder(t *testing.T, s UsageStore) {
	bucket := limiter.BucketKey{Namespace: "ns", Entity: "e", Resource: "r"}
	for _, hour := range []int{1, 3, 5, 9, 700} {
		s.Consume(t, usageBegin().Add(time.Duration(hour)*time.Hour), bucket, map[string]int64{"b": 1, "a": 2, "a_b": 3})
	}
	for _, w := range limiter.UsageWindows() {
		for _, f := range []limiter.UsageFilter{{Window: w}, {Window: w, Entity: "e", Resource: "r"}, {Window: w, Resource: "r"}} {
			got := s.list(t, 2, f)
			if want := map[limiter.UsageWindow]int{limiter.UsageHour: 5, limiter.UsageDay: 3, limiter.UsageMonth: 2}[w]; len(got) != want {
				t.Errorf("%+v: %d snapshots, want %d", f, len(got), want)
			}
			if f.Entity != "" && !slices.IsSortedFunc(got, func(a, b limiter.UsageSnapshot) int { return a.Start.Compare(b.Start) }) {
				t.Errorf("%+v: %+v are not in order", f, got)
			}
			for _, u := range got {
				if !slices.IsSortedFunc(u.Limits, func(a, b limiter.LimitUsage) int { return cmp.Compare(a.Limit, b.Limit) }) || len(u.Limits) != 3 {
					t.Errorf("%+v: limits %+v, want a, a_b and b", f, u.Limits)
				}
			}
		}
	}
}

// checkUsageNames: entities, resources and limits have any name, and all are distinguished.
func checkUsageNames(t *testing.T, s UsageStore) {
	names := []string{"a", "a#b", "a/b", "%", "~", "$SYSTEM", "\xff\x00", "ü", strings.Repeat("x", 200), strings.Repeat("#", 100)}
	limits := []string{"window", "ttl", "resource", "entity_id", "PK", "window_start", "total_events", "u", "p", "window_end"}
	at := usageBegin()
	for i, name := range names {
		s.Consume(t, at, limiter.BucketKey{Namespace: "ns", Entity: name, Resource: names[len(names)-1-i]}, map[string]int64{limits[i]: int64(i + 1)})
	}
	for i, name := range names {
		resource := names[len(names)-1-i]
		want := []limiter.UsageSnapshot{{
			Entity: name, Resource: resource, Start: limiter.UsageHour.Start(at), Limits: []limiter.LimitUsage{{Limit: limits[i], Tokens: int64(i + 1)}},
			Events: 1,
		}}
		for _, f := range []limiter.UsageFilter{{Entity: name}, {Resource: resource}, {Entity: name, Resource: resource}} {
			if got := s.list(t, 10, f); len(got) != 1 || usageText(got[0]) != usageText(want[0]) {
				t.Errorf("%q: got %+v, want %+v", f, got, want)
			}
		}
	}
	if got := s.list(t, 3, limiter.UsageFilter{}); len(got) != len(names) {
		t.Errorf("%d snapshots, want %d", len(got), len(names))
	}
}

func checkUsageRefused(t *testing.T, s UsageStore) {
	at := usageBegin()
	for name, ask := range map[string]struct {
		f limiter.UsageFilter
		p limiter.Page
	}{
		"no such window":          {f: limiter.UsageFilter{Window: 3}},
		"an end before the begin": {f: limiter.UsageFilter{From: at, To: at.Add(-time.Second)}},
		"too large a page":        {p: limiter.Page{Size: limiter.MaxPage + 1}},
		"no cursor":               {p: limiter.Page{After: "AAAA"}},
		"no base64":               {p: limiter.Page{After: "#"}},
	} {
		if _, err := s.ListUsage(t.Context(), "ns", ask.f, ask.p); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: error %v, want %q", name, err, limiter.ErrInvalid)
		}
	}
	if got, err := s.ListUsage(t.Context(), "nowhere", limiter.UsageFilter{}, limiter.Page{}); err != nil || len(got.Items) > 0 || got.Next != "" {
		t.Errorf("a namespace without usage: %+v, %v", got, err)
	}
}
