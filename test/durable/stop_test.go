package durable_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
)

// A program that is stopped cleanly loses nothing: under load, again and again, to
// the token.
func TestStoppedLosesNothing(t *testing.T) {
	h := newHistory()
	r := rand.New(rand.NewPCG(1, 2))
	dir, config := t.TempDir(), configuration(t, rules)
	for range 5 {
		p := start(t, dir, config)
		end := func() { p.stop(t) }
		if err := h.load(t.Context(), p, r, 8, 500, func(c *caller, ctx context.Context) { c.ledger(ctx) }, end); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, config)
	if e, crashed := p.said(notInOrder); crashed {
		t.Errorf("it says that it did not end in order: %+v", e)
	}
	if blocks := p.metric(t, "ratelimit_store_open_blocks"); blocks != 0 {
		t.Errorf("%v open blocks found, want 0", blocks)
	}
	// A call may be refused by a program that has stopped to listen, and was not applied then.
	got, want := p.balance(t, "ledger", "l", "n"), float64(10_000_000-h.spent())
	if got < want || got > want+0.01 || want == 10_000_000 {
		t.Errorf("got %v left, want %v", got, want)
	}
}

// Debt, and limits that were taken away and are put back, outlive both.
func TestStoppedKeepsDebtAndDormantLimits(t *testing.T) {
	h := newHistory()
	dir := t.TempDir()
	both := strings.ReplaceAll(rules, "{n: 40/second, m: {rate: 100/minute, burst: 500}}", "{n: {rate: 1/day, burst: 40}, m: {rate: 1/day, burst: 500}}")
	without := strings.ReplaceAll(strings.ReplaceAll(both, ", m: {rate: 1/day, burst: 500}}", "}"), "consume: {n: 1, m: hits}", "consume: {n: 1}")
	if without == both || both == rules {
		t.Fatal("the rules are not those of this test")
	}
	life := func(text string, act func(*caller), want map[string]float64) {
		t.Helper()
		p := start(t, dir, configuration(t, text))
		c, end := h.dial(t, p)
		act(c)
		end()
		for bucket, want := range want {
			key, value, limit := split(bucket)
			if got := p.balance(t, key, value, limit); got < want || got > want+0.01 {
				t.Errorf("%s: got %v left, want %v", bucket, got, want)
			}
		}
		p.stop(t)
	}
	ctx := t.Context()
	life(both, func(c *caller) {
		c.charge(ctx, "debt", "d", 1234)
		c.take(ctx, "two", "t", 123, map[string]int64{"n": 1, "m": 123})
	}, map[string]float64{"debt/d n": -234, "two/t n": 39, "two/t m": 377})
	life(without, func(c *caller) { c.take(ctx, "two", "t", 1, map[string]int64{"n": 1}) }, map[string]float64{"debt/d n": -234, "two/t n": 38})
	life(without, func(*caller) {}, map[string]float64{"two/t n": 38})
	life(both, func(c *caller) { c.take(ctx, "two", "t", 7, map[string]int64{"n": 1, "m": 7}) }, map[string]float64{"debt/d n": -234, "two/t n": 37, "two/t m": 370})
	if len(h.given["two/t n"]) != 3 {
		t.Errorf("%d takes were admitted, want 3", len(h.given["two/t n"]))
	}
}

// split returns the parts of the name of a bucket's limit.
func split(bucket string) (key, value, limit string) {
	name, limit, _ := strings.Cut(bucket, " ")
	key, value, _ = strings.Cut(name, "/")
	return key, value, limit
}
