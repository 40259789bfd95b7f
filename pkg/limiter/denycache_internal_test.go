package limiter

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A denial is cached only where it is an answer of the bucket. One that the process came to by its own
// share of the tokens, or by an estimate, tells nothing of the next request.
func TestDenialsOfBucketsAreCached(t *testing.T) {
	limits, err := NewLimits(PerDay("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	for name, tt := range map[string]struct {
		late, byShare, cached bool
	}{"of the bucket": {cached: true}, "late": {late: true}, "by a share": {byShare: true}} {
		t.Run(name, func(t *testing.T) {
			asks := Spend{Limit: "l", Take: 1000}
			denied := asks
			denied.Held, denied.Exceeded, denied.Limits, denied.Bucket = true, true, limits, tokenbucket.Bucket{Tokens: 999, Refilled: now.UnixMilli()}
			ops := func(sp Spend) []Op {
				return []Op{{Bucket: BucketKey{Entity: "e"}, Limits: limits, Spends: []Spend{sp}, Late: tt.late, ByShare: tt.byShare}}
			}
			c := newDenyCache(0, time.Second)
			c.learn(now, ops(denied))
			if got := c.deny(now.Add(time.Millisecond), ops(asks)); got != tt.cached {
				t.Errorf("the next request is denied without the store: %t, want %t", got, tt.cached)
			}
		})
	}
}

// A denial is repeated without the store for half a second at least, and for a second at most. Then one request asks.
func TestADenialIsRepeated(t *testing.T) {
	limits, err := NewLimits(PerDay("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	ops := func() []Op {
		denied := Spend{Limit: "l", Take: 1000, Held: true, Exceeded: true, Limits: limits, Bucket: tokenbucket.Bucket{Refilled: now.UnixMilli()}}
		return []Op{{Bucket: BucketKey{Entity: "e"}, Limits: limits, Spends: []Spend{denied}}}
	}
	c := newDenyCache(0, time.Second)
	for range 100 {
		c.learn(now, ops())
		if !c.deny(now.Add(maxDenial/2-time.Millisecond), ops()) {
			t.Fatal("the store is asked within half a second")
		}
		if c.deny(now.Add(maxDenial), ops()) {
			t.Fatal("the store is not asked after a second")
		}
		if !c.deny(now.Add(maxDenial), ops()) {
			t.Fatal("two requests ask the store")
		}
	}
	if maxDenial != time.Second {
		t.Error("the pages say: a second, and 1.1 s with the age of the state")
	}
}
