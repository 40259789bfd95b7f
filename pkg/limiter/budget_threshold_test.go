package limiter_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestReached(t *testing.T) {
	for used, want := range map[int64]int{
		math.MinInt64: 0, -1: 0, 0: 0, 799_999: 0, 800_000: 80, 949_999: 80, 950_000: 95, 999_999: 95, 1_000_000: 100, math.MaxInt64: 100,
	} {
		if got := limiter.ReachedPercent(1000, used); got != want {
			t.Errorf("%d millitokens reach %d %%, want %d", used, got, want)
		}
	}
}

// A threshold is reached exactly where used * 100 is at least the budget times the percentage.
func TestReachedIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(1, limiter.MaxTokens).Draw(t, "tokens")
		near := tokens * limiter.Milli / 100 * int64(rapid.SampledFrom(limiter.BudgetThresholds()).Draw(t, "near"))
		used := rapid.OneOf(rapid.Int64(), rapid.Int64Range(near-1000, near+1000)).Draw(t, "used")
		want := 0
		for _, p := range limiter.BudgetThresholds() {
			part := new(big.Int).Mul(big.NewInt(tokens*limiter.Milli), big.NewInt(int64(p)))
			if new(big.Int).Mul(big.NewInt(used), big.NewInt(100)).Cmp(part) >= 0 {
				want = p
			}
		}
		if got := limiter.ReachedPercent(tokens, used); got != want {
			t.Fatalf("%d of %d tokens reach %d %%, want %d", used, tokens, got, want)
		}
	})
}

func TestCrossed(t *testing.T) {
	for _, tt := range []struct {
		told, reached int
		want          []int
	}{{0, 0, nil}, {0, 80, []int{80}}, {0, 100, []int{80, 95, 100}}, {80, 100, []int{95, 100}}, {100, 100, nil}, {95, 80, nil}} {
		if diff := cmp.Diff(tt.want, limiter.CrossedThresholds(tt.told, tt.reached)); diff != "" {
			t.Errorf("from %d to %d (-want +got):\n%s", tt.told, tt.reached, diff)
		}
	}
}

// Events of different thresholds, windows and entities have different names, and the same one has always
// the same.
func TestIDs(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for _, entity := range []string{"a", "b"} {
		for _, start := range []time.Time{at, at.AddDate(0, 1, 0)} {
			for _, tokens := range []int64{10, 20} {
				b := limiter.Budget{Limit: "l", Window: limiter.UsageMonth, Tokens: tokens}
				for _, e := range limiter.BudgetEvents(limiter.BudgetBucket{Entity: entity}, b, start, 0, 50_000) {
					again := e
					again.Used++
					if seen[e.ID()] || e.ID() != again.ID() || len(e.ID()) != 32 {
						t.Errorf("%+v has the id %s", e, e.ID())
					}
					seen[e.ID()] = true
				}
			}
		}
	}
	if len(seen) != 24 {
		t.Errorf("%d ids, want 24", len(seen))
	}
}

func ExampleBudgetEvents() {
	b := limiter.Budget{Limit: "tokens", Window: limiter.UsageMonth, Tokens: 50_000_000}
	of := limiter.BudgetBucket{Namespace: "default", Entity: "team-a", Resource: "gpt-4"}
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, e := range limiter.BudgetEvents(of, b, month, 80, 50_000_001*limiter.Milli) { // 80 % was reported before
		fmt.Printf("%s has used %d %% of the %s's %d %s\n", e.Entity, e.Percent, e.Window, e.Tokens, e.Limit)
	}
	// Output:
	// team-a has used 95 % of the month's 50000000 tokens
	// team-a has used 100 % of the month's 50000000 tokens
}
