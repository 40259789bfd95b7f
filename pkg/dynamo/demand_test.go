package dynamo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// asking counts n requests for some millitokens of limit l, evenly in a time.
func asking(d *demand, from time.Time, n int, in time.Duration, each int64) time.Time {
	for i := range n {
		from = from.Add(in / time.Duration(n))
		d.count(from)
		if each > 0 || i == 0 {
			d.add("l", each)
		}
	}
	return from
}

func TestQuotasFollowTheDemand(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	type want struct {
		most, least int64
		span        time.Duration
	}
	for _, tt := range []struct {
		name   string
		n      int
		in     time.Duration
		each   int64
		policy limiter.LeasePolicy
		want   want
		slack  int64 // percent of most
	}{
		{name: "nobody"},
		{name: "one", n: 1, in: time.Millisecond, each: 1000},
		{name: "one in a second", n: 10, in: 10 * time.Second, each: 1000},
		{name: "looks only", n: 100, in: time.Second},
		{name: "two at once", n: 2, in: time.Microsecond, each: 1000, want: want{8000, 1000, 800 * time.Millisecond}},
		{name: "warm", n: 40, in: 10 * time.Second, each: 1000, want: want{4000, 1000, time.Second}, slack: 15},
		{name: "hot", n: 3000, in: 3 * time.Second, each: 2000, want: want{1_000_000, 2000, hotFor}, slack: 6},
		{name: "a burst", n: 64, in: time.Millisecond, each: 1000, want: want{160_000, 1000, hotFor}},
		{name: "for longer", n: 3000, in: 3 * time.Second, each: 2000, policy: limiter.LeasePolicy{For: time.Second}, want: want{2_000_000, 2000, time.Second}, slack: 5},
		{name: "bounded", n: 3000, in: 3 * time.Second, each: 2000, policy: limiter.LeasePolicy{Max: 5000}, want: want{5000, 2000, hotFor}},
		{name: "bounded below a request", n: 3000, in: 3 * time.Second, each: 2000, policy: limiter.LeasePolicy{Max: 1999}},
		{name: "for too short", n: 20, in: time.Second, each: 1000, policy: limiter.LeasePolicy{For: 50 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d demand
			now := asking(&d, start, tt.n, tt.in, tt.each)
			quotas, span := d.quotas(now, tt.policy)
			var got want
			if len(quotas) > 0 {
				got = want{quotas[0].most, quotas[0].least, span}
			}
			if slack := tt.want.most * tt.slack / 100; got.most >= tt.want.most-slack && got.most <= tt.want.most+slack {
				got.most = tt.want.most
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A demand that ends is forgotten within a second, whatever it was.
func TestDemandFades(t *testing.T) {
	var d demand
	now := asking(&d, time.Unix(1_000_000, 0), 100_000, 2*time.Second, 1<<40)
	for range 100 {
		now = now.Add(10 * time.Millisecond)
		d.fade(now)
	}
	d.fade(now.Add(time.Second))
	if d.requests != 0 || len(d.limits) != 0 {
		t.Errorf("after two idle seconds: %+v", d)
	}
	d.fade(now.Add(-time.Hour)) // a clock that was set back moves nothing
	if quotas, _ := d.quotas(now, limiter.LeasePolicy{}); quotas != nil {
		t.Errorf("quotas for nobody: %+v", quotas)
	}
}

func TestSizing(t *testing.T) {
	quotas := []quota{{limit: "a", most: 1000, least: 100}, {limit: "b", most: 50, least: 10}}
	for _, tt := range []struct {
		name   string
		kept   int64
		parts  int64
		a, b   int64
		ga, gb int64 // granted; both 0: nothing
	}{
		{name: "plenty", parts: 2, a: 10_000, b: 10_000, ga: 1000, gb: 50},
		{name: "a part of what is there", parts: 4, a: 2000, b: 10_000, ga: 500, gb: 50},
		{name: "with what is kept", kept: 40, parts: 2, a: 10_000, b: 10_000, ga: 960, gb: 10},
		{name: "a part of one that is not worth a lease", parts: 2, a: 799, b: 10_000},
		{name: "a part of the other that is not", parts: 2, a: 10_000, b: 79},
		{name: "enough of one, with what is kept of the other", kept: 30, parts: 2, a: 800, b: 0, ga: 400},
		{name: "in debt", parts: 2, a: 10_000, b: -1},
	} {
		got := sizing(quotas, []amount{{"a", tt.kept}, {"b", tt.kept}}, tt.parts)([]amount{{"a", tt.a}, {"b", tt.b}, {"c", 7}})
		if amountOf(got, "a") != tt.ga || amountOf(got, "b") != tt.gb || amountOf(got, "c") != 0 {
			t.Errorf("%s: granted %v, want %d of a and %d of b", tt.name, got, tt.ga, tt.gb)
		}
	}
}
