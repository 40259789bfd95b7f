package lane

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// asking returns a request for that many millitokens.
func asking(n int64) *plan.Request {
	return &plan.Request{Spends: []plan.Spend{{Limit: "l", Need: n, Take: n}}}
}

func TestAShareIsTheLanesPart(t *testing.T) {
	params := tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 1000 * 1000}
	s := Share{replicas: 3, trip: 5, limits: []portion{{limit: "l", there: 9000, most: 3000, params: params}}}
	for i, step := range []struct {
		wants  int64
		limit  string
		beyond bool
	}{
		{2000, "", false},
		{2000, "l", false}, // waits for the next write
		{1000, "", false},
		{5000, "l", true}, // 10 of 9 tokens are asked for
	} {
		r := asking(step.wants)
		limit, beyond := s.Short(r, haste{deniable: true})
		if limit != step.limit || beyond != step.beyond {
			t.Errorf("request %d for %d: short of %q, beyond %t; want %q, %t", i, step.wants, limit, beyond, step.limit, step.beyond)
		}
		if s.Ask(r); limit == "" {
			s.Take(r)
		}
	}
	var alone Share
	if limit, _ := alone.Short(asking(1<<40), haste{deniable: true}); limit != "" {
		t.Errorf("a lane alone is short of %q", limit)
	}
}

// The first request that takes has enough, also behind a refund in the same write.
func TestTheFirstRequestHasEnough(t *testing.T) {
	params := tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 1000 * 1000}
	s := Share{replicas: 3, trip: 5, limits: []portion{{limit: "l", there: 1500, most: 500, params: params}}}
	for i, want := range []string{"", "", "l"} {
		if limit, _ := s.Short(asking(1000), haste{deniable: true}); limit != want {
			t.Errorf("request %d is short of %q, want %q", i, limit, want)
		}
		if i == 0 {
			s.Take(&plan.Request{Spends: []plan.Spend{{Limit: "l", Give: 700}}})
			continue
		}
		s.Take(asking(1000))
	}
}

// A replica leaves to the others their part of the tokens, and the refill of a round trip.
func TestShareLeavesMargin(t *testing.T) {
	s := newShare(3, 4)
	s.Add("l", tokenbucket.Params{Capacity: 100_000, Amount: 1_000_000, Period: 1000}, 34_000, 0)
	if got := s.limits[0].most; got != 10_000 {
		t.Errorf("the part of one of three: got %d, want a third of 34 tokens less the 4 of a round trip", got)
	}
}

// The tokens of a request that does not fit stay with the others; those that the replica owes do not.
func TestAskingForMoreThanThereIs(t *testing.T) {
	s := newShare(2, 5)
	s.Add("l", tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 1000 * 1000}, 3000, 0)
	if s.Ask(asking(4000)); s.Left("l") != 3000 {
		t.Errorf("%d left after a request that does not fit, want 3000", s.Left("l"))
	}
	if s.Ask(asking(1000)); s.Left("l") != 2000 {
		t.Errorf("%d left after a request for 1000, want 2000", s.Left("l"))
	}
	if s.Owe(asking(4000)); s.Left("l") != 0 {
		t.Errorf("%d left beside 4000 that are owed, want 0", s.Left("l"))
	}
}

// A denial for want of the lane's own part reports the lesser of two balances: that of the
// item, and the rest that those before leave. It is less than the request asks for, and nothing
// is reported as given back.
func TestADenialTellsWhatIsLeft(t *testing.T) {
	const milli = int64(limiter.Milli)
	for name, tt := range map[string]struct{ left, want int64 }{
		"less than the item has": {4 * milli, 4 * milli},
		"more than the item has": {8 * milli, 6 * milli},
		"nothing":                {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &plan.Request{Admitted: true, Spends: []plan.Spend{
				{Limit: "l", Need: 7 * milli, Take: 7 * milli, Left: tokenbucket.Bucket{Tokens: 6 * milli}},
				{Limit: "other", Need: milli, Take: milli, Back: milli, Left: tokenbucket.Bucket{Tokens: 2 * milli}},
			}}
			Exceed(r, "l", tt.left)
			if sp := r.Spends[0]; r.Admitted || !sp.Exceeded || sp.Left.Tokens != tt.want {
				t.Errorf("admitted %t, exceeded %t with %d left, want a denial with %d", r.Admitted, sp.Exceeded, sp.Left.Tokens, tt.want)
			}
			if sp := r.Spends[1]; sp.Exceeded || sp.Back != 0 || sp.Left.Tokens != 3*milli {
				t.Errorf("the other limit: exceeded %t, %d given back, %d left, want %d left", sp.Exceeded, sp.Back, sp.Left.Tokens, 3*milli)
			}
		})
	}
	for _, kind := range []plan.Spend{{Limit: "l", Need: 5 * milli}, {Limit: "l", Ask: 5 * milli}} {
		kind.Left.Tokens = 6 * milli
		r := &plan.Request{Spends: []plan.Spend{kind}}
		if Exceed(r, "l", 6*milli); r.Spends[0].Left.Tokens != 5*milli-1 {
			t.Errorf("%d left of a denied 5 tokens, want less than those", r.Spends[0].Left.Tokens)
		}
	}
}
