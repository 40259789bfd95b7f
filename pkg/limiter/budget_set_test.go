package limiter_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// monthly returns a budget of the limit tpm for each month.
func monthly(t *testing.T, tokens int64) *limiter.Budgets {
	t.Helper()
	b, err := limiter.NewBudgets(limiter.Budget{Limit: "tpm", Window: limiter.UsageMonth, Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// want requires the tokens of the budget of a bucket; 0 = there is none.
func want(t *testing.T, set *limiter.BudgetSet, stored limiter.StoredBudgets, entity, resource string, tokens int64) {
	t.Helper()
	of := limiter.BudgetBucket{Namespace: "n", Entity: entity, Resource: resource}
	b, ok := set.Of(&of, "tpm", limiter.UsageMonth, &stored)
	if own := entity == "e"; ok && of.Shared == own {
		t.Errorf("%s for %s: shared is %t", entity, resource, of.Shared)
	}
	if b.Tokens != tokens || ok != (tokens > 0) {
		t.Errorf("%s for %s: budget %d, %t; want %d", entity, resource, b.Tokens, ok, tokens)
	}
}

// set1 returns a set of one limit.
func set1(t *testing.T, name string) *limiter.Limits {
	t.Helper()
	return set(t, limiter.PerDay(name, 1))
}

func TestTheMostSpecificBudgetHolds(t *testing.T) {
	set := limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{
		limiter.SystemLimitsRef():                             monthly(t, 1),
		limiter.ResourceLimitsRef("r"):                        monthly(t, 2),
		limiter.EntityLimitsRef("e", limiter.DefaultResource): monthly(t, 3),
		limiter.EntityLimitsRef("e", "r"):                     monthly(t, 4),
		limiter.EntityLimitsRef("without", "r"):               nil,
		limiter.EntityLimitsRef("other", "of another one"):    monthly(t, 9),
	})
	var none limiter.StoredBudgets
	want(t, set, none, "x", "y", 1)
	want(t, set, none, "x", "r", 2)
	want(t, set, none, "without", "r", 2)
	want(t, set, none, "e", "y", 3)
	want(t, set, none, "e", "r", 4)
	want(t, set, none, "other", "y", 1)
	want(t, nil, none, "e", "r", 0)
	if set.Len() != 5 || (*limiter.BudgetSet)(nil).Len() != 0 {
		t.Errorf("%d budgets", set.Len())
	}
	if _, ok := set.Of(&limiter.BudgetBucket{Namespace: "n", Entity: "e", Resource: "r"}, "tpm", limiter.UsageDay, &none); ok {
		t.Error("there is a budget for the day")
	}
	if _, ok := set.Of(&limiter.BudgetBucket{Namespace: "n", Entity: "e", Resource: "r"}, "rpm", limiter.UsageMonth, &none); ok {
		t.Error("there is a budget of another limit")
	}
}

// Stored limits replace those of their names in the configuration at their place and at no other. They do so with
// their budgets, also where they have none.
func TestStoredBudgetsReplaceThoseOfTheConfiguration(t *testing.T) {
	set := limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{
		limiter.SystemLimitsRef():                             monthly(t, 1),
		limiter.ResourceLimitsRef("r"):                        monthly(t, 2),
		limiter.EntityLimitsRef("e", limiter.DefaultResource): monthly(t, 4),
	})
	tpm, rpm := set1(t, "tpm"), set1(t, "rpm")
	system := limiter.StoredBudgets{3: {Limits: tpm, Budgets: monthly(t, 100)}}
	without := limiter.StoredBudgets{2: {Limits: tpm}, 3: {Limits: tpm, Budgets: monthly(t, 100)}}
	own := limiter.StoredBudgets{0: {Limits: tpm}, 2: {Limits: tpm, Budgets: monthly(t, 5)}}
	other := limiter.StoredBudgets{2: {Limits: rpm}, 3: {Limits: rpm}}
	want(t, set, other, "x", "y", 1)
	want(t, set, other, "x", "r", 2)
	want(t, set, system, "x", "y", 100)
	want(t, set, system, "x", "r", 2)
	want(t, set, without, "x", "r", 100)
	want(t, set, without, "e", "r", 4)
	want(t, set, own, "x", "r", 5)
	want(t, set, own, "e", "r", 4)
	want(t, nil, system, "x", "y", 100)
}
