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

// Generators. Each mixes the whole range with the regions where errors are likely: its ends, and
// numbers so small that remainders and ties are frequent.

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
			Amount:   rapid.OneOf(millitokens(tokenbucket.MaxCapacity), millitokens(tokenbucket.MaxCapacity), rapid.Just(int64(0))).Draw(t, "amount"),
			Period:   period.Draw(t, "period"),
		}
	})
}

// genDelta draws the change of the caller's clock between two calls: usually forwards, at times
// none, at times backwards.
func genDelta(p tokenbucket.Params) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, 3),
		rapid.Int64Range(0, p.Period),
		rapid.Int64Range(0, 3*tokenbucket.MaxPeriod),
		rapid.Int64Range(-2*p.Period, 0),
	)
}

// genAmount draws the amount of a request: near the balance, near the capacity, or any.
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

// genBucket draws a bucket in any state that calls can lead to: partly used, full or in debt, with
// a remainder, under a smaller capacity than before, and with an extra.
func genBucket(p tokenbucket.Params) *rapid.Generator[tokenbucket.Bucket] {
	return rapid.Custom(func(t *rapid.T) tokenbucket.Bucket {
		start := rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "start")
		b := tokenbucket.Full(p, start)
		for range rapid.IntRange(0, 3).Draw(t, "history") {
			b = b.ForceConsume(p, genAmount(p, b).Draw(t, "charged"), b.Refilled+genDelta(p).Draw(t, "after"))
			if rapid.Bool().Draw(t, "lowered") {
				greater := genParams().Draw(t, "greater")
				greater.Capacity = max(greater.Capacity, p.Capacity)
				used := tokenbucket.Full(greater, b.Refilled).ForceConsume(greater, rapid.Int64Range(0, greater.Capacity).Draw(t, "before"), b.Refilled)
				b = used.Reparameterize(greater, p, b.Refilled)
			}
			if rapid.Bool().Draw(t, "raised") {
				b, _ = b.TopUp(p, genAmount(p, b).Draw(t, "top-up"), b.Refilled)
			}
		}
		return b
	})
}

// modelOf returns the model of a bucket in a given state.
func modelOf(p tokenbucket.Params, b tokenbucket.Bucket) *model {
	part := big.NewRat(b.Remainder, p.Period)
	m := &model{params: p, balance: rat(b.Tokens), use: rat(max(p.Capacity+b.Carried-b.Tokens, 0)), at: b.Refilled}
	m.use.Sub(m.use, part)
	if b.Tokens < p.Capacity {
		m.balance.Add(m.balance, part)
	}
	return m
}

// TestOperations runs random sequences of all operations on a bucket and on the model, and compares
// all answers after each.
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

// TestRefillByAnySchedule: any schedule of refills over a span ends with the state of one refill
// over the whole span, and with that of the model.
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

// TestRetryAfterIsTheFirstMillisecond: a request passes when its retry-after is over and at no time
// before, from any balance and after a clock that went backwards.
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
		if got := b.Available(p, now+full); got != p.Capacity+b.Refill(p, now).Extra() {
			t.Fatalf("TimeToFull %d ms: Available then %d, want the capacity %d and the extra", full, got, p.Capacity)
		}
		if full > 0 && b.Available(p, now+full-1) >= p.Capacity {
			t.Fatalf("TimeToFull %d ms: full 1 ms before", full)
		}
		unused := b.TimeToUnused(p, now)
		if unused >= tokenbucket.Forever {
			return
		}
		if !b.Unused(p, now+unused) || b.Use(p, now+unused) != 0 || unused < full {
			t.Fatalf("TimeToUnused %d ms, TimeToFull %d ms: %d is used then", unused, full, b.Use(p, now+unused))
		}
		if unused > 0 && b.Unused(p, now+unused-1) {
			t.Fatalf("TimeToUnused %d ms: unused 1 ms before", unused)
		}
	})
}

// checkRetry compares RetryAfter with the bucket's own answers and the model's.
func checkRetry(t tb, p tokenbucket.Params, b tokenbucket.Bucket, amount, now int64) {
	t.Helper()
	m := modelOf(p, b)
	retry, ok := b.RetryAfter(p, amount, now)
	asked := amount
	if asked == 0 {
		asked = tokenbucket.Milli
	}
	if want := asked <= p.Capacity+b.Refill(p, now).Extra(); ok != want {
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

// TestNeverOverGrants is the promise as a user states it: in any interval at most B + r·t is
// granted, and an extra. A clock that goes backwards counts as one that stands.
func TestNeverOverGrants(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := genParams().Draw(t, "params")
		b := genBucket(p).Draw(t, "bucket")
		extra := b.Extra()
		type grant struct{ at, amount int64 }
		var grants []grant
		now, latest := b.Refilled, b.Refilled
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now += genDelta(p).Draw(t, "delta")
			latest = max(latest, now)
			amount := genAmount(p, b.Refill(p, now)).Draw(t, "amount")
			var ok bool
			b, ok = b.TryConsume(p, amount, now)
			if ok {
				grants = append(grants, grant{latest, amount})
			}
		}
		for i := range grants {
			sum := new(big.Rat)
			for _, g := range grants[i:] {
				sum.Add(sum, rat(g.amount))
				bound := granted(p, grants[i].at, g.at)
				bound.Add(bound, rat(p.Capacity+extra))
				if sum.Cmp(bound) > 0 {
					t.Fatalf("granted %v millitokens in [%d, %d], bound %v", sum, grants[i].at, g.at, bound)
				}
			}
		}
	})
}

// TestReparameterizeMintsNothing switches between limits, with and without time in between, also
// after full. In any interval no more is granted than the bound: the greatest capacity that was in
// force in it, the refill of each limit while it was in force, and an extra.
func TestReparameterizeMintsNothing(t *testing.T) {
	check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(genParams(), 2, 3).Draw(t, "limits")
		p := limits[0]
		b := genBucket(p).Draw(t, "bucket")
		extra := b.Extra()
		type grant struct {
			amount, capacity int64    // granted, and the capacity in force
			refill           *big.Rat // since the first
		}
		changes := rapid.IntRange(1, 40).Draw(t, "changes")
		grants := make([]grant, 0, changes)
		refill, now := new(big.Rat), b.Refilled
		for range changes {
			last := b.Refilled
			now += genDelta(p).Draw(t, "delta")
			to := rapid.SampledFrom(limits).Draw(t, "to")
			use := b.Use(p, now)
			b = b.Reparameterize(p, to, now)
			if got := b.Use(to, now); got != use || b.Remainder != 0 || b.Tokens > to.Capacity+b.Extra() {
				t.Fatalf("Reparameterize of a use of %d: got %+v, which is a use of %d", use, b, got)
			}
			refill = new(big.Rat).Add(refill, granted(p, last, b.Refilled))
			p = to
			g := grant{amount: genAmount(p, b).Draw(t, "amount"), capacity: p.Capacity, refill: refill}
			var ok bool
			b, ok = b.TryConsume(p, g.amount, now)
			if !ok {
				g.amount = 0
			}
			grants = append(grants, g)
		}
		for i := range grants {
			sum, capacity := new(big.Rat), int64(0)
			for _, g := range grants[i:] {
				sum.Add(sum, rat(g.amount))
				capacity = max(capacity, g.capacity)
				bound := new(big.Rat).Sub(g.refill, grants[i].refill)
				bound.Add(bound, rat(capacity+extra))
				if sum.Cmp(bound) > 0 {
					t.Fatalf("%v granted, bound %v, by %+v", sum, bound, grants[i:])
				}
			}
		}
	})
}

// TestRaise: a capacity raised by d raises the balance by d, from any balance of a bucket that
// carries nothing. A raise and the same cut change nothing. A bucket without use is the same as an
// unused one, under any later parameters.
func TestRaise(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := genParams().Draw(t, "params")
		b := genBucket(p).Draw(t, "bucket")
		b.Carried = 0
		greater := genParams().Draw(t, "greater")
		greater.Capacity = max(greater.Capacity, p.Capacity)
		now := b.Refilled + genDelta(p).Draw(t, "delta")
		was := b.Refill(p, now)
		raised := b.Reparameterize(p, greater, now)
		want := tokenbucket.Bucket{Tokens: was.Tokens + greater.Capacity - p.Capacity, Refilled: was.Refilled}
		if raised != want {
			t.Fatalf("%+v raised from %d to %d: got %+v, want %+v", was, p.Capacity, greater.Capacity, raised, want)
		}
		back := raised.Reparameterize(greater, p, now)
		if again := back.Reparameterize(p, greater, now); again.Tokens > raised.Tokens || again.Use(greater, now) != raised.Use(greater, now) {
			t.Fatalf("%+v, lowered and raised again: %+v", raised, again)
		}
		if was.Unused(p, now) && raised != tokenbucket.Full(greater, was.Refilled) {
			t.Fatalf("an unused bucket raised: %+v", raised)
		}
	})
}
