package main

import (
	"fmt"
	"math/big"
	"regexp"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// budgetRow is a row of the page's table of budgets.
type budgetRow struct {
	rate, burst                  string
	atOnce, in30, in31           string // USD
	limit                        limiter.Limit
	wantOnce, wantIn30, wantIn31 *big.Rat // micro-dollars, by arithmetic
}

// budgetRows returns the page's table of budgets.
func budgetRows(t *testing.T) []budgetRow {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([0-9_]+/\\d+h)` \\| `([0-9_]+)` \\| ([0-9.]+) \\| ([0-9.]+) \\| ([0-9.]+) \\|$")
	found := row.FindAllStringSubmatch(llmPage(t), -1)
	rows := make([]budgetRow, 0, len(found))
	for _, m := range found {
		r := budgetRow{rate: m[1], burst: m[2], atOnce: m[3], in30: m[4], in31: m[5]}
		cfg := programtest.Parsed(t, fmt.Sprintf("limits: {system: {usd: {rate: %s, burst: %s}}}", r.rate, r.burst))
		r.limit = cfg.Static.System.At(0)
		admits := func(days int64) *big.Rat { // capacity, and refill in that time
			refill := big.NewRat(r.limit.RefillAmount*days*24, int64(r.limit.RefillPeriod/time.Hour))
			return refill.Add(refill, big.NewRat(r.limit.Capacity, 1))
		}
		r.wantOnce, r.wantIn30, r.wantIn31 = admits(0), admits(30), admits(31)
		rows = append(rows, r)
	}
	if len(rows) < 3 {
		t.Fatalf("rows of budgets on the page: got %d, want 3", len(rows))
	}
	return rows
}

// greedy is a client that sends the same request again and again, after each denial
// as soon as retry-after allows.
type greedy struct {
	limiter *limiter.Limiter
	request *limiter.Request
	now     time.Time
	spent   int64 // micro-dollars
}

// cost is the cost of each request of a greedy client, in micro-dollars.
const cost = 5_000

func newGreedy(t *testing.T, limit limiter.Limit) *greedy {
	t.Helper()
	limits, err := limiter.NewLimits(limit)
	if err != nil {
		t.Fatal(err)
	}
	store := embedded.New(embedded.Config{SweepInterval: 24 * time.Hour}) // not by the clock of the machine
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &greedy{limiter: l, now: time.UnixMilli(0), request: &limiter.Request{Takes: []limiter.Take{{
		Entity: "key/k", Resource: "budget", Limits: limits, Consume: []limiter.Consumption{{Limit: limit.Name, Amount: cost * limiter.Milli}},
	}}}}
}

// until spends until an instant, it included.
func (g *greedy) until(t *testing.T, end time.Time) {
	t.Helper()
	var d limiter.Decision
	for !g.now.After(end) {
		if err := g.limiter.Decide(t.Context(), g.now, g.request, &d); err != nil {
			t.Fatal(err)
		}
		if d.Admitted {
			g.spent += cost
			continue
		}
		if d.RetryAfter <= 0 {
			t.Fatalf("denied for good after %d micro-dollars: %v", g.spent, d.Reason)
		}
		g.now = g.now.Add(d.RetryAfter)
	}
}

// A client that spends as much as it can gets the monthly budget of the page: never
// more, and less by no more than a request.
func TestBudgetsOfTheLLMPage(t *testing.T) {
	t.Parallel()
	for _, row := range budgetRows(t) {
		t.Run(row.rate+" burst "+row.burst, func(t *testing.T) {
			t.Parallel()
			g, start := newGreedy(t, row.limit), time.UnixMilli(0)
			for _, span := range []struct {
				name string
				end  time.Time
				want *big.Rat
				page string
			}{
				{"at once", start, row.wantOnce, row.atOnce},
				{"in 30 days", start.AddDate(0, 0, 30), row.wantIn30, row.in30},
				{"in 31 days", start.AddDate(0, 0, 31), row.wantIn31, row.in31},
			} {
				g.until(t, span.end)
				got := big.NewRat(g.spent, 1)
				if least := new(big.Rat).Sub(span.want, big.NewRat(cost+1, 1)); got.Cmp(span.want) > 0 || got.Cmp(least) < 0 {
					t.Errorf("%s: got %d micro-dollars, want at most %s, and less by no more than a request", span.name, g.spent, span.want.FloatString(3))
				}
				if usd := new(big.Rat).Quo(span.want, big.NewRat(1_000_000, 1)).FloatString(2); span.page != usd {
					t.Errorf("%s: the page says %s USD, want %s", span.name, span.page, usd)
				}
			}
		})
	}
}
