package storetest

import (
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// retryChecks are about the state after a denial, which gives the time at which the request passes.
func retryChecks() []check {
	return []check{
		{name: "retry/first millisecond", run: checkRetry},
		{name: "retry/never", run: checkRetryNever},
		{name: "retry/several buckets", run: checkRetrySeveral},
	}
}

// checkRetry: the state in the spend after a denial gives the first millisecond at which the same
// request is admitted. One millisecond earlier it is denied.
func checkRetry(t T, s limiter.Store) {
	r := seeded(3, 0)
	for i := range 300 {
		c := newClient(t, s)
		capacity := 1 + r.Int64N(200)
		l := limiter.Custom("l", capacity, 1+r.Int64N(300), time.Duration(1000+r.Int64N(1_000_000))*time.Millisecond)
		need := 1 + r.Int64N(tokens(capacity))
		sp := limiter.Spend{Take: need}
		if i%5 == 0 {
			sp, need = limiter.Spend{Look: true}, 0
		}
		op := c.one(fmt.Sprint("user", i), l, sp)
		c.want(true, 0, spending(op, limiter.Spend{Charge: tokens(capacity) + r.Int64N(tokens(2*capacity))}))
		asked := r.Int64N(1000)
		if i%3 == 0 {
			asked = -r.Int64N(1_000_000) // by a clock that is behind the bucket
		}
		if c.take(asked, op) {
			continue
		}
		wait, ok := op.Spends[0].Bucket.RetryAfter(l.Params(), need, epoch+asked)
		if !ok || wait <= 0 {
			t.Fatalf("denied at %d ms, but the state says to wait %d ms (%t); %s", asked, wait, ok, describe([]limiter.Op{op}))
		}
		c.want(false, asked+wait-1, op)
		c.want(true, asked+wait, op)
	}
}

// checkRetryNever: a request for more than the capacity is denied at any time, and its state shows
// that it always will be.
func checkRetryNever(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerSecond("l", 3), limiter.Spend{Take: tokens(3) + 1})
	for _, ms := range []int64{0, 1000, 1_000_000_000_000} {
		c.want(false, ms, op)
		if sp := op.Spends[0]; !sp.Exceeded || sp.Bucket.Tokens != tokens(3) {
			t.Fatalf("at %d ms: exceeded = %t with %d left, want true with 3 tokens", ms, sp.Exceeded, sp.Bucket.Tokens)
		}
		if wait, ok := op.Spends[0].Bucket.RetryAfter(op.Limits.Params(0), op.Spends[0].Take, epoch+ms); ok {
			t.Errorf("at %d ms: the state says to wait %d ms, want never", ms, wait)
		}
	}
}

// checkRetrySeveral: the wait for a request that several limits of several buckets
// deny is the longest of theirs.
func checkRetrySeveral(t T, s limiter.Store) {
	c := newClient(t, s)
	set := c.limits(limiter.PerMinute("rpm", 7), limiter.PerHour("tpm", 1000))
	ops := []limiter.Op{
		on("child", set, limiter.Spend{Limit: "rpm", Take: tokens(3)}, limiter.Spend{Limit: "tpm", Take: tokens(900)}),
		on("parent", set, limiter.Spend{Limit: "rpm", Take: tokens(7)}, limiter.Spend{Limit: "tpm", Take: tokens(1000)}),
	}
	c.want(true, 0, ops...)
	c.want(false, 777, ops...)
	var longest int64
	for i := range ops {
		for _, sp := range ops[i].Spends {
			wait, ok := sp.Bucket.RetryAfter(set.Params(set.Find(sp.Limit)), sp.Take, epoch+777)
			if !ok {
				t.Fatalf("never, where waiting helps; %s", describe(ops))
			}
			longest = max(longest, wait)
		}
	}
	if want := int64(3_600_000 - 777); longest != want {
		t.Errorf("wait = %d ms, want %d", longest, want)
	}
	c.want(false, 777+longest-1, ops...)
	if got := ops[1].Spends[0].Bucket; got != (tokenbucket.Bucket{Tokens: tokens(7), Refilled: epoch + 777 + longest - 1}) {
		t.Errorf("a limit that is full again after the denial: %+v", got)
	}
	c.want(true, 777+longest, ops...)
}
