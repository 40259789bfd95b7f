package tokenbucket_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// check runs ten times the cases that rapid does by default: they are cheap.
func check(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range 10 {
		rapid.Check(t, prop)
	}
}

// Generators. Each mixes the whole range with the neighbourhood where mistakes
// show: its ends, and numbers small enough that remainders and ties are frequent.

func millitokens(most int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(1, min(most, 50)),
		rapid.Int64Range(1, min(most, 5_000_000)),
		rapid.Int64Range(1, most),
		rapid.Int64Range(max(1, most-1000), most),
	)
}

func genParams() *rapid.Generator[tokenbucket.Params] {
	period := rapid.OneOf(
		rapid.SampledFrom([]int64{tokenbucket.MinPeriod, 1009, 60_000, 3_600_000, 86_400_000, tokenbucket.MaxPeriod}),
		rapid.Int64Range(tokenbucket.MinPeriod, tokenbucket.MinPeriod+20),
		rapid.Int64Range(tokenbucket.MinPeriod, tokenbucket.MaxPeriod),
	)
	return rapid.Custom(func(t *rapid.T) tokenbucket.Params {
		return tokenbucket.Params{
			Capacity: millitokens(tokenbucket.MaxCapacity).Draw(t, "capacity"),
			Amount:   millitokens(tokenbucket.MaxCapacity).Draw(t, "amount"),
			Period:   period.Draw(t, "period"),
		}
	})
}

// genDelta is how far the caller's clock moves between two calls: mostly on, at
// times not at all, and at times back.
func genDelta(p tokenbucket.Params) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, 3),
		rapid.Int64Range(0, p.Period),
		rapid.Int64Range(0, 3*tokenbucket.MaxPeriod),
		rapid.Int64Range(-2*p.Period, 0),
	)
}

// genAmount is an amount to ask for: near the balance, near the capacity, or any.
func genAmount(p tokenbucket.Params, b tokenbucket.Bucket) *rapid.Generator[int64] {
	near := func(n int64) *rapid.Generator[int64] {
		n = max(n, 0)
		return rapid.Int64Range(max(0, n-2), min(n+2, tokenbucket.MaxAmount))
	}
	return rapid.OneOf(
		rapid.Int64Range(0, 2),
		near(b.Tokens),
		near(p.Capacity),
		rapid.Int64Range(0, p.Capacity),
		rapid.Int64Range(0, tokenbucket.MaxAmount),
	)
}

// genBucket is a bucket in any state that calls can lead to: partly used, full or
// in debt, with a remainder.
func genBucket(p tokenbucket.Params) *rapid.Generator[tokenbucket.Bucket] {
	return rapid.Custom(func(t *rapid.T) tokenbucket.Bucket {
		start := rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "start")
		b := tokenbucket.Full(p, start)
		for range rapid.IntRange(0, 3).Draw(t, "history") {
			b = b.ForceConsume(p, genAmount(p, b).Draw(t, "charged"), b.Refilled+genDelta(p).Draw(t, "after"))
		}
		return b
	})
}

// modelOf is the model of a bucket in a given state.
func modelOf(p tokenbucket.Params, b tokenbucket.Bucket) *model {
	balance := big.NewRat(b.Remainder, p.Period)
	return &model{params: p, balance: balance.Add(balance, rat(b.Tokens)), at: b.Refilled}
}

// TestOperations lets random sequences of every operation run on a bucket and on
// the model, and asks both everything after each.
func TestOperations(t *testing.T) {
	check(t, func(t *rapid.T) {
		m := newMachine(genParams().Draw(t, "params"), rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "start"))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			o := op{
				kind:   rapid.SampledFrom(opKinds).Draw(t, "op"),
				delta:  genDelta(m.params).Draw(t, "delta"),
				amount: genAmount(m.params, m.bucket).Draw(t, "amount"),
			}
			if o.kind == opReparameterize {
				o.to = genParams().Draw(t, "to")
			}
			m.step(t, o)
		}
	})
}

// TestRefillByAnySchedule: however often and whenever a bucket is refilled over a
// span, it ends as it does by one refill over the whole span, and as the model says.
func TestRefillByAnySchedule(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := genParams().Draw(t, "params")
		start := genBucket(p).Draw(t, "bucket")
		bucket, now := start, start.Refilled
		for _, d := range rapid.SliceOfN(genDelta(p), 1, 50).Draw(t, "deltas") {
			now += d
			bucket = bucket.Refill(p, now)
			if again := bucket.Refill(p, now); again != bucket {
				t.Fatalf("refilled twice at %d: got %+v, want %+v", now, again, bucket)
			}
		}
		if once := start.Refill(p, bucket.Refilled); bucket != once {
			t.Fatalf("refill by schedule to %d: got %+v, at once %+v", bucket.Refilled, bucket, once)
		}
		m := modelOf(p, start)
		m.refill(bucket.Refilled)
		if want := m.bucket(t); bucket != want {
			t.Fatalf("refill to %d: got %+v, want %+v", bucket.Refilled, bucket, want)
		}
	})
}

// TestRetryAfterIsTheFirstMillisecond: a request passes when its retry-after is
// over and at no time before, from any balance and after a clock that went back.
func TestRetryAfterIsTheFirstMillisecond(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := genParams().Draw(t, "params")
		b := genBucket(p).Draw(t, "bucket")
		amount := genAmount(p, b).Draw(t, "amount")
		now := b.Refilled + genDelta(p).Draw(t, "delta")
		checkRetry(t, p, b, amount, now)

		full := b.TimeToFull(p, now)
		if full >= tokenbucket.Forever {
			return
		}
		if got := b.Available(p, now+full); got != p.Capacity {
			t.Fatalf("TimeToFull %d ms: Available then %d, want the capacity %d", full, got, p.Capacity)
		}
		if full > 0 && b.Available(p, now+full-1) >= p.Capacity {
			t.Fatalf("TimeToFull %d ms: full 1 ms before", full)
		}
	})
}

// checkRetry checks RetryAfter against the bucket's own answers and the model's.
func checkRetry(t tb, p tokenbucket.Params, b tokenbucket.Bucket, amount, now int64) {
	t.Helper()
	m := modelOf(p, b)
	retry, ok := b.RetryAfter(p, amount, now)
	asked := amount
	if asked == 0 {
		asked = tokenbucket.Milli
	}
	if want := asked <= p.Capacity; ok != want {
		t.Fatalf("RetryAfter(%d) of capacity %d: can pass %v, want %v", amount, p.Capacity, ok, want)
	}
	switch {
	case !ok:
		if retry != 0 {
			t.Fatalf("RetryAfter(%d) never passes: got %d ms, want 0", amount, retry)
		}
		return
	case retry == tokenbucket.Forever: // passes then or later, so not before
	case !b.WouldRefillSatisfy(p, amount, now+retry) || !m.passes(amount, now+retry):
		t.Fatalf("RetryAfter(%d) at %d of %+v: %d ms is too early", amount, now, b, retry)
	}
	if retry > 0 && (b.WouldRefillSatisfy(p, amount, now+retry-1) || m.passes(amount, now+retry-1)) {
		t.Fatalf("RetryAfter(%d) at %d of %+v: %d ms is too late", amount, now, b, retry)
	}
	if retry < 0 || retry > tokenbucket.Forever {
		t.Fatalf("RetryAfter(%d) at %d of %+v: %d ms is not in 0 to Forever", amount, now, b, retry)
	}
}

// TestNeverOverGrants is the promise as a user states it: in any interval at most
// B + r·t is granted, where a clock that goes back counts as one that stands.
func TestNeverOverGrants(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := genParams().Draw(t, "params")
		b := genBucket(p).Draw(t, "bucket")
		type grant struct{ at, amount int64 }
		var grants []grant
		now, latest := b.Refilled, b.Refilled
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now += genDelta(p).Draw(t, "delta")
			latest = max(latest, now)
			amount := genAmount(p, b.Refill(p, now)).Draw(t, "amount")
			var ok bool
			if b, ok = b.TryConsume(p, amount, now); ok {
				grants = append(grants, grant{latest, amount})
			}
		}
		for i := range grants {
			sum := new(big.Rat)
			for _, g := range grants[i:] {
				sum.Add(sum, rat(g.amount))
				bound := granted(p, grants[i].at, g.at)
				if bound.Add(bound, rat(p.Capacity)); sum.Cmp(bound) > 0 {
					t.Fatalf("granted %v millitokens in [%d, %d], bound %v", sum, grants[i].at, g.at, bound)
				}
			}
		}
	})
}

// TestReparameterizeMintsNothing flaps between limits, with no time or some
// passing, and counts: what was granted and what is left came from the first
// balance and from refill at the rate of the limit then in force.
func TestReparameterizeMintsNothing(t *testing.T) {
	check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(genParams(), 2, 3).Draw(t, "limits")
		p := limits[0]
		b := genBucket(p).Draw(t, "bucket")
		budget, now := modelOf(p, b).balance, b.Refilled
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			last := b.Refilled
			now += genDelta(p).Draw(t, "delta")
			to := rapid.SampledFrom(limits).Draw(t, "to")
			due := b.Available(p, now)
			b = b.Reparameterize(p, to, now)
			if want := min(due, to.Capacity); b.Tokens != want || b.Remainder != 0 {
				t.Fatalf("Reparameterize with %d due: got %+v, want %d tokens and no remainder", due, b, want)
			}
			budget.Add(budget, granted(p, last, b.Refilled))
			p = to
			amount := genAmount(p, b).Draw(t, "amount")
			var ok bool
			if b, ok = b.TryConsume(p, amount, now); ok {
				budget.Sub(budget, rat(amount))
			}
			if modelOf(p, b).balance.Cmp(budget) > 0 {
				t.Fatalf("%+v holds more than the %v that came in", b, budget)
			}
		}
	})
}
