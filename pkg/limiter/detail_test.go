package limiter_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The audit of an adjustment has amounts without needless zeros, and the text that a person gave for it.
func TestAdjustmentDetail(t *testing.T) {
	for _, c := range []struct {
		of   limiter.Adjustment
		want string
	}{
		{limiter.Adjustment{Kind: limiter.AdjustReset}, "every limit"},
		{limiter.Adjustment{Kind: limiter.AdjustSet, Limit: "rpm", Tokens: -1500}, "limit rpm, -1.5 tokens"},
		{limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 25_000, Once: `INV "7"`}, `every limit, 25 tokens; once "INV \"7\""`},
		{limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 7}, "every limit, 0.007 tokens"},
	} {
		if got := c.of.Detail(new(limiter.Adjusted)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
