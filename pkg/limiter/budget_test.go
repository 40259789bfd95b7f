package limiter_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestBudgetsRefused(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerDay("tokens", 10), limiter.Unlimited("free"))
	if err != nil {
		t.Fatal(err)
	}
	day := limiter.Budget{Limit: "tokens", Window: limiter.UsageDay, Tokens: 1}
	for name, all := range map[string][]limiter.Budget{
		"no limit":         {{Window: limiter.UsageDay, Tokens: 1}},
		"no limit's name":  {{Limit: "9", Tokens: 1}},
		"no tokens":        {{Limit: "tokens"}},
		"too many":         {{Limit: "tokens", Tokens: limiter.MaxTokens + 1}},
		"no window":        {{Limit: "tokens", Tokens: 1, Window: 3}},
		"twice":            {day, {Limit: "tokens", Window: limiter.UsageDay, Tokens: 2}},
		"of no such limit": {{Limit: "other", Tokens: 1}},
		"of an unlimited":  {{Limit: "free", Tokens: 1}},
	} {
		set, err := limiter.NewBudgets(all...)
		if err == nil {
			err = set.CheckLimits(limits)
		}
		if !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Sets with the same budgets are equal, given in any order.
func TestBudgetsEqual(t *testing.T) {
	month, day := limiter.Budget{Limit: "a", Window: limiter.UsageMonth, Tokens: 1}, limiter.Budget{Limit: "a", Window: limiter.UsageDay, Tokens: 1}
	more := limiter.Budget{Limit: "a", Window: limiter.UsageDay, Tokens: 2}
	set := func(all ...limiter.Budget) *limiter.Budgets {
		s, err := limiter.NewBudgets(all...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, tt := range []struct {
		a, b *limiter.Budgets
		want bool
	}{
		{nil, nil, true},
		{nil, set(), true},
		{nil, set(day), false},
		{set(day), nil, false},
		{set(day, month), set(month, day), true},
		{set(day), set(month), false},
		{set(day), set(more), false},
		{set(day), set(day, month), false},
	} {
		if got := tt.a.Equal(tt.b); got != tt.want {
			t.Errorf("%v and %v are equal: %t", tt.a, tt.b, got)
		}
		if got := tt.a.Hash() == tt.b.Hash(); got != tt.want {
			t.Errorf("%v and %v have the same hash: %t", tt.a, tt.b, got)
		}
	}
}

// The text of an audit event has the budgets of each limit.
func TestBudgetsInDetail(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerDay("a", 10), limiter.PerDay("b", 10))
	if err != nil {
		t.Fatal(err)
	}
	budgets, err := limiter.NewBudgets(limiter.Budget{Limit: "a", Window: limiter.UsageMonth, Tokens: 9}, limiter.Budget{Limit: "a", Window: limiter.UsageHour, Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	const want = "a 10/day budget 1/hour budget 9/month, b 10/day"
	if got := (limiter.Record{Limits: limits, Budgets: budgets}).Detail(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func ExampleBudgets_Of() {
	budgets, err := limiter.NewBudgets(
		limiter.Budget{Limit: "tokens", Window: limiter.UsageMonth, Tokens: 20_000_000},
		limiter.Budget{Limit: "tokens", Window: limiter.UsageDay, Tokens: 2_000_000},
	)
	if err != nil {
		fmt.Println(err)
	}
	b, ok := budgets.Of("tokens", limiter.UsageMonth)
	fmt.Println(b.Tokens, ok)
	_, ok = budgets.Of("tokens", limiter.UsageHour)
	fmt.Println(ok)
	// Output:
	// 20000000 true
	// false
}
