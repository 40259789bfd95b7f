package embedded

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// An extra outlives a crash, less a block, and a restart a day later, without refill above the capacity.
func TestAnExtraOutlivesACrash(t *testing.T) {
	l := newNode(t)
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 100)), 40)
	l.take(true, op)
	a := adjustment{Adjustment: limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: 500_000, Excess: limiter.ExcessKept}, balances: l.store.balances, hash: l.store.hash(&op.Bucket)}
	now := l.now.UnixMilli()
	out, err := a.read(now)
	if err != nil || out.After.Limits[0].Tokens != 560_000 {
		t.Fatalf("%+v, %v; want 560 tokens", out, err)
	}
	for done := false; !done; l.write() {
		if done, _, err = a.try(now, &out); err != nil {
			t.Fatal(err)
		}
	}
	if out.Booked[0].Tokens != 500_000 || out.After.Limits[0].Tokens != 560_000 {
		t.Fatalf("%+v, want 560 tokens", out)
	}
	for _, want := range []int64{560_000, 530_000} {
		l.kill(0)
		l.now = l.now.Add(24 * time.Hour)
		look := opOf("e", op.Limits, 0)
		l.take(true, look)
		if got := look.Spends[0].Bucket; got.Tokens > want || got.Tokens < want-2*100_000/hotShare || got.Extra() != got.Tokens-100_000 {
			t.Errorf("after a crash: %+v, want %d less a block", got, want)
		}
		l.take(true, opOf("e", op.Limits, 30))
		l.write()
	}
}

// Of two copies of a bucket the lower balance counts, above the capacity too.
func TestTheLowerExtraCounts(t *testing.T) {
	l := limitsOf(t, limiter.PerDay("l", 100))
	with := func(extra int64) *contents {
		c := &contents{limits: l, first: tokenbucket.Full(l.Params(0), 0)}
		c.first, _ = c.first.TopUp(l.Params(0), extra, 0)
		return c
	}
	for _, tt := range []struct{ own, other, want int64 }{{5000, 3000, 103_000}, {3000, 5000, 103_000}, {5000, 0, 100_000}, {0, 5000, 100_000}, {5000, 5000, 105_000}} {
		c := with(tt.own)
		lowered := c.lower(with(tt.other), true, 0)
		if got := c.first; got.Tokens != tt.want || got.Extra() != tt.want-100_000 || lowered != (tt.own > tt.other) {
			t.Errorf("%d beside %d: %+v, lowered %v", tt.own, tt.other, got, lowered)
		}
	}
}
