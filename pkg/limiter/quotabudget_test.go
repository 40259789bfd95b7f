package limiter_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// usd is a limit with a budget of a month, and with one that is tried.
func usd(budget, tried int64) []limiter.Limit {
	month := limiter.Calendar{Unit: limiter.CalendarMonth}
	all := []limiter.Limit{limiter.PerDay("usd", 1000)}
	if budget > 0 {
		all = append(all, limiter.Quota("usd.month", budget, month))
	}
	if tried > 0 {
		all = append(all, limiter.Quota("usd.month.shadow", tried, month))
	}
	return all
}

// A quota that is a budget merges by its name, as each limit does: the most specific place that has it
// decides, also beside a limit of another place.
func TestBudgetsBesideOwnLimits(t *testing.T) {
	for _, tt := range []struct {
		name             string
		own, system      []limiter.Limit
		admitted, denied int // tokens in a month
	}{
		{"of the system", usd(0, 0), usd(10, 0), 10, 11},
		{"of both", usd(100, 0), usd(10, 0), 100, 101},
		{"of the rule", usd(20, 0), usd(0, 0), 20, 21},
		{"of the rule alone", usd(30, 0)[1:], usd(0, 0), 30, 31},
		{"none", nil, usd(5, 0), 5, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, tt.system...)})
			ask := func(n int) bool {
				req := take("org/acme", "m", "usd", n)
				if tt.own != nil {
					req.Takes[0].Limits = set(t, tt.own...)
				}
				return decide(t, l, t0, req).Admitted
			}
			if ask(tt.denied) {
				t.Errorf("%d admitted", tt.denied)
			}
			if !ask(tt.admitted) {
				t.Errorf("%d denied", tt.admitted)
			}
			if ask(1) {
				t.Errorf("%d and 1 admitted", tt.admitted)
			}
		})
	}
}

// A budget that is tried need not have one in force beside it, in the limits of a rule either.
func TestTriedBudgets(t *testing.T) {
	for _, tt := range []struct {
		name        string
		own, system []limiter.Limit
	}{
		{"of the system", nil, usd(0, 10)},
		{"of the system, beside a rule's limit", usd(0, 0), usd(0, 10)},
		{"of the rule", usd(0, 10), usd(0, 0)},
		{"of both", usd(0, 10), usd(0, 5)},
		{"of both, beside one in force", usd(50, 10), usd(50, 5)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, tt.system...)})
			for _, admitted := range []bool{true, false} {
				req := take("org/acme", "m", "usd", 10)
				if tt.own != nil {
					req.Takes[0].Limits = set(t, tt.own...)
				}
				d := decide(t, l, t0, req)
				if !d.Admitted || !d.Tries() {
					t.Fatalf("admitted %t, tries %t; want both", d.Admitted, d.Tries())
				}
				var tried limiter.Request
				req.TriedIn(&tried)
				if d := decide(t, l, t0.Add(time.Second), &tried); d.Admitted != admitted {
					t.Errorf("what is tried admits %t, want %t", d.Admitted, admitted)
				}
			}
		})
	}
}

// A rule with a plan's limits has the names of the plan and no others, though the entity has the same
// plan with all its names.
func TestNamesOfAPlanAreOfTheRuleAlone(t *testing.T) {
	plan := set(t, limiter.PerDay("rpd", 5))
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		Plans: map[string]*limiter.Limits{"free": plan},
		Entities: map[string]limiter.StaticEntity{"user/ada": {
			Plan: "free", Limits: map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.PerDay("other", 7))},
		}},
	})
	ordinary := take("user/ada", "m", "other", 7)
	own := take("user/ada", "m", "rpd", 1, "other", 1)
	own.Takes[0].Limits, own.Takes[0].LimitsBy, own.Takes[0].LimitsOf = plan, limiter.ByPlan, "free"
	if d := decide(t, l, t0, ordinary); !d.Admitted {
		t.Fatal("7 of 7 denied")
	}
	if d := decide(t, l, t0, own); d.Admitted {
		t.Error("the rule has a bucket of its own for a limit that is none of the plan's")
	}
}

// A budget of 0 denies, of the take's own limits or of a level, and at the place that decides about its name.
func TestBudgetsOfNothing(t *testing.T) {
	zero := limiter.Limit{Name: "usd.month", RefillPeriod: 24 * time.Hour}
	for _, tt := range []struct {
		name           string
		own, e, system []limiter.Limit
		admitted       bool
	}{
		{"of the system", nil, nil, append(usd(0, 0), zero), false},
		{"of the entity", nil, []limiter.Limit{zero}, usd(10, 0), false},
		{"of the system, and more for the entity", nil, usd(10, 0)[1:], append(usd(0, 0), zero), true},
		{"beside a rule's limit", usd(0, 0), nil, append(usd(0, 0), zero), false},
		{"of the rule", append(usd(0, 0), zero), nil, usd(10, 0), false},
		{"of the system, and more for the rule", usd(10, 0), nil, append(usd(0, 0), zero), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			static := limiter.Static{System: set(t, tt.system...)}
			if tt.e != nil {
				static.Entities = map[string]limiter.StaticEntity{"e": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: set(t, tt.e...)}}}
			}
			l := newLimiter(t, limiter.Config{}, static)
			req := take("e", "m", "usd", 1)
			if tt.own != nil {
				req.Takes[0].Limits = set(t, tt.own...)
			}
			if d := decide(t, l, t0, req); d.Admitted != tt.admitted {
				t.Errorf("admitted %t, want %t: %v", d.Admitted, tt.admitted, brief(d))
			}
		})
	}
}

// A quota whose name has another unit than its calendar is no budget: it has usage, and a settlement of the other
// limit does not change it.
func TestQuotasOfAnotherUnit(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerDay("tokens", 1000), limiter.Quota("tokens.month", 100, limiter.Calendar{Unit: limiter.CalendarDay}))})
	req := take("e", "m", "tokens", 10, "tokens.month", 1)
	d := decide(t, l, t0, req)
	holdings := d.Holdings(nil, req, 0)
	mark := limiter.Mark{Namespace: limiter.DefaultNamespace, ID: "r", Owner: "a", Expires: t0.Add(time.Hour)}
	if won, err := l.Settle(t.Context(), t0, mark, holdings, []limiter.Consumption{{Limit: "tokens", Amount: 50 * limiter.Milli}}); !won || err != nil {
		t.Fatal(won, err)
	}
	wantBrief(t, decide(t, l, t0, take("e", "m", "tokens", 0, "tokens.month", 0)), "admitted=true none retry=0s",
		"e/m tokens 950 left exceeded=false", "e/m tokens.month 99 left exceeded=false")
	for _, h := range holdings {
		if h.Bucket.Window != (limiter.Window{}) && h.Bucket.Uncounted("tokens.month") {
			t.Error("usage leaves the quota out")
		}
	}
}
