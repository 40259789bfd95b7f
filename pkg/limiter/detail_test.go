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
		{limiter.Adjustment{Kind: limiter.AdjustTopUp, Limit: "usd", Tokens: 12_500_000_000}, "limit usd, 12.50 USD"},
		{limiter.Adjustment{Kind: limiter.AdjustSet, Limit: "tpm", Tokens: 2_000_000_000}, "limit tpm, 2_000_000 tokens"},
	} {
		if got := c.of.Detail(new(limiter.Adjusted)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// The audit of limits has amounts as people read them.
func TestRecordDetail(t *testing.T) {
	budgets, err := limiter.NewBudgets(limiter.Budget{Limit: "usd", Window: limiter.UsageMonth, Tokens: 12_345_000_000})
	if err != nil {
		t.Fatal(err)
	}
	r := limiter.Record{Budgets: budgets, Limits: set(t, limiter.PerHour("usd", 700_000_000), limiter.PerDay("tpd", 2_000_000).WithBurst(10).WithMaxDebt(50_000), limiter.PerDay("none", 1).WithMaxDebt(limiter.NoDebt))}
	if got, want := r.Detail(), "none 1/day max_debt 0, tpd 2_000_000/day burst 10 max_debt 50_000, usd 700 USD/hour budget 12_345 USD/month"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
