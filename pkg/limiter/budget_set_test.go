package limiter_test

import (
	"testing"
	"time"

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
	b, from := set.Of(&of, "tpm", limiter.UsageMonth, &stored)
	ok := from != limiter.SourceNone
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
	if _, from := set.Of(&limiter.BudgetBucket{Namespace: "n", Entity: "e", Resource: "r"}, "tpm", limiter.UsageDay, &none); from != limiter.SourceNone {
		t.Error("there is a budget for the day")
	}
	if _, from := set.Of(&limiter.BudgetBucket{Namespace: "n", Entity: "e", Resource: "r"}, "rpm", limiter.UsageMonth, &none); from != limiter.SourceNone {
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

// A stored quota takes the place of the budget whose name it has, where it decides: at its place and at those that
// are less specific. It makes no budget where there is none.
func TestStoredQuotasAreBudgets(t *testing.T) {
	month := limiter.Calendar{Unit: limiter.CalendarMonth}
	set1 := limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{
		limiter.SystemLimitsRef():                             monthly(t, 100),
		limiter.EntityLimitsRef("e", limiter.DefaultResource): monthly(t, 40),
	})
	fifty, nothing := set(t, limiter.Quota("tpm.month", 50, month)), set(t, limiter.Limit{Name: "tpm.month", RefillPeriod: 24 * time.Hour})
	beside := set(t, limiter.PerMinute("tpm", 10), limiter.Quota("tpm.month", 50, month))
	byDay := set(t, limiter.Quota("tpm.month", 50, limiter.Calendar{Unit: limiter.CalendarDay}))
	for _, tt := range []struct {
		name   string
		set    *limiter.BudgetSet
		entity string
		stored limiter.StoredBudgets
		tokens int64
		from   limiter.Source
	}{
		{"none", set1, "x", limiter.StoredBudgets{}, 100, limiter.SourceSystemConfig},
		{"of the entity", set1, "x", limiter.StoredBudgets{1: {Limits: fifty}}, 50, limiter.SourceEntityDefault},
		{"of the entity, in place of its budget", set1, "e", limiter.StoredBudgets{1: {Limits: fifty}}, 50, limiter.SourceEntityDefault},
		{"of the entity for the resource", set1, "e", limiter.StoredBudgets{0: {Limits: fifty}}, 50, limiter.SourceEntity},
		{"of the system", set1, "x", limiter.StoredBudgets{3: {Limits: fifty}}, 50, limiter.SourceSystem},
		{"of the system, with a budget of the entity", set1, "e", limiter.StoredBudgets{3: {Limits: fifty}}, 40, limiter.SourceEntityDefaultConfig},
		{"beside a stored budget", set1, "x", limiter.StoredBudgets{1: {Limits: beside, Budgets: monthly(t, 70)}}, 50, limiter.SourceEntityDefault},
		{"of another unit", set1, "x", limiter.StoredBudgets{1: {Limits: byDay}}, 100, limiter.SourceSystemConfig},
		{"of nothing", set1, "x", limiter.StoredBudgets{1: {Limits: nothing}}, 0, limiter.SourceNone},
		{"without a budget", nil, "x", limiter.StoredBudgets{1: {Limits: fifty}}, 0, limiter.SourceNone},
	} {
		of := limiter.BudgetBucket{Namespace: "n", Entity: tt.entity, Resource: "r"}
		b, from := tt.set.Of(&of, "tpm", limiter.UsageMonth, &tt.stored)
		if b.Tokens != tt.tokens || from != tt.from || of.Shared != (from >= limiter.SourceKindConfig) {
			t.Errorf("%s: %d of %v, shared %t; want %d of %v", tt.name, b.Tokens, from, of.Shared, tt.tokens, tt.from)
		}
	}
}
