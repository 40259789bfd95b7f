package plan

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A request joins another one where one write of their sum does what two writes do.
func TestJoin(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
	if err != nil {
		t.Fatal(err)
	}
	others, err := limiter.NewLimits(limiter.PerDay("l", 101))
	if err != nil {
		t.Fatal(err)
	}
	of := func(sp Spend) *Request { return &Request{Limits: limits, Generation: 3, Spends: []Spend{sp}} }
	owed := Spend{Limit: "l", Cost: 7, Usage: 7, Forced: true, Held: true}
	gives := of(Spend{Limit: "l", Give: 5, Usage: -5})
	if !gives.Join(of(Spend{Limit: "l", Give: 6, Usage: -6})) || gives.Spends[0] != (Spend{Limit: "l", Give: 11, Usage: -11}) {
		t.Errorf("two refunds are %+v", gives.Spends[0])
	}
	for name, tc := range map[string]struct {
		other *Request
		want  bool
	}{
		"owed as it is":         {of(Spend{Limit: "l", Cost: 5, Usage: 6, Forced: true}), true},
		"one that uses alone":   {of(Spend{Limit: "l", Usage: 6, Forced: true}), true},
		"one down to the floor": {of(Spend{Limit: "l", Cost: 5}), false},
		"a refund":              {of(Spend{Limit: "l", Give: 5, Forced: true}), false},
		"a take":                {of(Spend{Limit: "l", Need: 5, Take: 5, Forced: true}), false},
		"another limit":         {of(Spend{Limit: "m", Cost: 5, Forced: true}), false},
		"too much together":     {of(Spend{Limit: "l", Cost: tokenbucket.MaxAmount - 6, Forced: true}), false},
		"two limits":            {&Request{Limits: limits, Generation: 3, Spends: []Spend{owed, owed}}, false},
		"other limits":          {&Request{Limits: others, Generation: 3, Spends: []Spend{owed}}, false},
		"newer limits":          {&Request{Limits: limits, Generation: 4, Spends: []Spend{owed}}, false},
	} {
		r := of(owed)
		if got := r.Join(tc.other); got != tc.want {
			t.Errorf("%s: joined %t, want %t", name, got, tc.want)
		}
		want := owed
		if tc.want {
			want.Cost, want.Usage = want.Cost+tc.other.Spends[0].Cost, want.Usage+tc.other.Spends[0].Usage
		}
		if r.Spends[0] != want {
			t.Errorf("%s: %+v, want %+v", name, r.Spends[0], want)
		}
	}
}
