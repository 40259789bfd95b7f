package fleetsim_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fullOf and extraOf are the capacity of a limit and its extra, in millitokens.
const fullOf, extraOf = 100_000, 30_000

// A reset leaves an extra beside the full balance, and a set takes it away. Callers may take so much
// since then, and not a millitoken more.
func TestAResetLeavesAnExtra(t *testing.T) {
	const tokens = 20_000
	for _, tc := range []struct {
		kind limiter.AdjustKind
		most int64
	}{{limiter.AdjustReset, fullOf + extraOf}, {limiter.AdjustSet, tokens}} {
		for more := range int64(2) {
			f, b, l := withExtra(t)
			l.lacks = &shortfall{}
			a := &adjusting{Adjustment: limiter.Adjustment{Kind: tc.kind, Tokens: tokens}, bucket: b, limits: b.limits, landed: 1}
			a.to = a.levels()
			a.sets()
			a.applied(f, l, l.ends(a), 0)
			l.took(f, b, &call{}, tc.most+more)
			if got := f.fault != nil; got != (more > 0) {
				t.Errorf("%s, %d millitokens taken: violation %t (%v)", tc.kind.Action(), tc.most+more, got, f.fault)
			}
		}
	}
}

// withExtra returns a bucket with one full limit that never refills, and an extra.
func withExtra(t *testing.T) (*fleet, *bucket, *limitHistory) {
	limits, err := limiter.NewLimits(limiter.Custom("a", fullOf/limiter.Milli, 0, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	p := limits.Params(0)
	l := &limitHistory{name: "a", admitted: newTally(0), all: newTally(0)}
	l.admitted.under(p)
	it := &schema.Bucket{Line: schema.WholeLine(), Shard: schema.Shard{Level: 1}}
	it.Balances = []schema.Balance{{Limit: limits.At(0), Whole: p, Share: p, Carried: -extraOf}}
	b := &bucket{limits: []*limitHistory{l}}
	b.items[0] = it
	return &fleet{eventLoop: &eventLoop{}}, b, l
}

// A span of time that begins beside an extra has it above the capacity. That it was given counts for the
// spans before, so that an extra without a top-up is found.
func TestASpanBeginsBesideAnExtra(t *testing.T) {
	for name, tc := range map[string]struct {
		before bool  // a call began before the extra was there
		gift   int64 // of the top-up
		took   int64
		want   bool // it is a violation
	}{
		"all of it":           {false, extraOf, fullOf + extraOf, false},
		"a millitoken more":   {false, extraOf, fullOf + extraOf + 1, true},
		"topped up":           {true, extraOf, fullOf + extraOf, false},
		"topped up by less":   {true, extraOf - 1, fullOf + extraOf, true},
		"without a top-up":    {true, 0, fullOf + 1, true},
		"within the capacity": {true, 0, fullOf, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, b, l := withExtra(t)
			y := l.admitted
			if tc.before {
				y.end(y.begin(0, 0), 0)
			}
			y.gives(tc.gift)
			y.gave(tc.gift)
			y.end(y.begin(second, b.extra("a")), tc.took)
			if got := y.check(second, 0); (got != nil) != tc.want {
				t.Errorf("violation %v, want %t", got, tc.want)
			}
		})
	}
}
