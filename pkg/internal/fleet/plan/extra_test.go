package plan_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// raise returns a bucket's shards with an extra of limit a. They must carry no use.
func raise(t fataler, leaves []*schema.Bucket, now, millitokens int64) []*schema.Bucket {
	t.Helper()
	a := &limiter.Adjustment{Limit: leaves[0].Limits.At(0).Name, Kind: limiter.AdjustTopUp, Tokens: millitokens, Excess: limiter.ExcessKept}
	changes, err := plan.Adjust(leaves, now, a, wisher, false)
	if err != nil {
		t.Fatalf("%v", err)
	}
	after := make([]*schema.Bucket, len(changes))
	for i, w := range changes {
		after[i] = w.After()
	}
	return after
}

// uncarried returns shards whose limits carry no use.
func uncarried(leaves []*schema.Bucket) []*schema.Bucket {
	for _, b := range leaves {
		for i := range b.Balances {
			b.Balances[i].Carried = 0
		}
	}
	return leaves
}

// TestExtraIsThatOfOneBucket: a limit with an extra decides as tokenbucket does, by writes that are exact while the
// extra lasts, and the item shows the same as the plan.
func TestExtraIsThatOfOneBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		state := raise(t, uncarried([]*schema.Bucket{drawn(t, epoch)}), epoch, rapid.Int64Range(1, 3_000_000).Draw(t, "extra"))[0]
		w.put([]*schema.Bucket{state})
		if state.Any("a").Extra() > 0 && state.TTL != 0 {
			t.Fatalf("the item of an extra expires at %d", state.TTL)
		}
		view := plan.At(state, epoch)
		p, want, now := view.Params[0], view.Centre[0], int64(epoch)
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			now += rapid.Int64Range(0, 2000).Draw(t, "wait")
			want = want.Refill(p, now)
			sp := limiter.Spend{Limit: "a"}
			amount := rapid.Int64Range(1, max(want.Tokens, 1)).Draw(t, "amount")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				sp.Take = amount
				want, _ = want.TryConsume(p, amount, now)
			case 1:
				sp.Charge = amount
				want = want.ForceConsume(p, amount, now)
			case 2:
				sp.Refund = amount
				want = want.ForceConsume(p, -amount, now)
			}
			had := state.Any("a").Extra()
			st := plan.NewStage(state, now, plan.Options{})
			_, r := op(t, state.Limits, 1, sp)
			verdict := st.Weigh(r)
			if had > 0 && verdict != plan.Exact && verdict != plan.Denied {
				t.Fatalf("a write beside an extra of %d is %v", had, verdict)
			}
			if verdict == plan.Denied {
				continue
			}
			st.Apply(r)
			write := st.Write(w.id(1), 1)
			applied, image := w.send(write, 0)
			if !applied {
				t.Fatalf("%+v was refused", sp)
			}
			w.sameState(write.After(), image)
			if ended := had > 0 && image.Any("a").Extra() == 0; ended && image.Shard.Epoch == state.Shard.Epoch {
				t.Fatalf("the extra of %d ended in epoch %d", had, image.Shard.Epoch)
			}
			state = image
			got := plan.At(state, now).Centre[0].Refill(p, now)
			if got.Tokens < want.Tokens-1 || got.Tokens > want.Tokens || got.Extra() != want.Extra() || got.Extra() > 0 && state.TTL != 0 {
				t.Fatalf("after %+v of %d: %+v, ttl %d, want %+v", sp, had, got, state.TTL, want)
			}
			want = got
		}
	})
}

// TestExtraOfShards: each shard gets its part, a shard with an extra is not split, and merged they have all of it.
func TestExtraOfShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaves := uncarried(grown(t, epoch))
		before := stateOf(leaves, epoch)
		amount := rapid.Int64Range(1, 5*before.Limit.Capacity*limiter.Milli).Draw(t, "amount")
		leaves = raise(t, leaves, epoch, amount)
		total := stateOf(leaves, epoch).Tokens
		if total != before.Tokens+amount {
			t.Fatalf("%d more than %d is %d", amount, before.Tokens, total)
		}
		over := max(total-before.Limit.Capacity*limiter.Milli, 0)
		for _, b := range leaves {
			of := b.Any("a")
			if extra := of.Extra(); extra != schema.PartOf(over, b.Shard.Index, b.Shard.Level) || extra > 0 && plan.Splits(b) {
				t.Fatalf("shard %d of %d has %d of %d, and can be split: %v", b.Shard.Index, b.Shard.Level, extra, over, plan.Splits(b))
			}
		}
		for len(leaves) > 1 {
			leaves = mergeOne(t, leaves)
		}
		if got := stateOf(leaves, epoch).Tokens; got < total-4 || got > total {
			t.Fatalf("merged there are %d, want %d", got, total)
		}
	})
}

// mergeOne merges two of the shards of a bucket.
func mergeOne(t *rapid.T, leaves []*schema.Bucket) []*schema.Bucket {
	for i, heir := range leaves {
		for j, b := range leaves {
			other := heir.Shard.Other()
			if i == j || !heir.Shard.Sharded() || heir.Shard.Index >= heir.Shard.Level/2 || b.Shard.Index != other.Index || b.Shard.Level != heir.Shard.Level {
				continue
			}
			retired, err := plan.Retire(b, epoch, 1)
			if err != nil {
				t.Fatal(err)
			}
			absorbed, err := plan.Absorb(heir, retired.After(), epoch, 1)
			if err != nil {
				t.Fatal(err)
			}
			next := []*schema.Bucket{absorbed.After()}
			for k, c := range leaves {
				if k != i && k != j {
					next = append(next, c)
				}
			}
			return next
		}
	}
	t.Fatal("no two shards can be merged")
	return nil
}

// TestExtraBesideLeases: no lease begins or grows beside an extra. A lease that was missing when the extra was
// added comes back with its part of the room, which the extra fills.
func TestExtraBesideLeases(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(1000, 2, 300, 300, 3000)) // 7 are left of 10
	a := &limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 5000, Excess: limiter.ExcessKept}
	if _, err := plan.Adjust([]*schema.Bucket{b.state}, epoch+1000, a, wisher, false); !errors.Is(err, plan.ErrLent) {
		t.Fatalf("an extra beside a lease: %v, want %v", err, plan.ErrLent)
	}
	changes, err := plan.Adjust([]*schema.Bucket{b.state}, epoch+1000, a, wisher, true)
	if err != nil {
		t.Fatal(err)
	}
	if !b.transact(changes) {
		t.Fatal("the extra was refused")
	}
	b.state = b.read(0)
	if got := plan.Balances([]*schema.Bucket{b.state}, epoch+1000)[0]; got.Tokens != 12_000 || b.state.Balances[0].Extra() != 5000 {
		t.Fatalf("%+v, want 12 tokens, 5 of them above the room", got)
	}
	held := *b.state.Lease(2)
	for name, q := range map[string]plan.LeaseWrite{
		"a new lease": {Replica: 3, Lease: &schema.Lease{Rate: 1}},
		"more room":   {Replica: 2, Seen: &held, Lease: &schema.Lease{Rate: 300, Room: 301}},
		"tokens":      {Replica: 2, Seen: &held, Lease: &schema.Lease{Rate: 300, Room: 300}, Draw: []int64{1}},
	} {
		if err := plan.NewStage(b.state, epoch+1000, plan.Options{}).Lease(q); !errors.Is(err, plan.ErrLease) {
			t.Errorf("%s beside an extra: %v, want %v", name, err, plan.ErrLease)
		}
	}
	b.land(b.lease(1000, 2, 0, 0, 0)) // its tokens are spent
	if got := plan.Balances([]*schema.Bucket{b.state}, epoch+1000)[0]; got.Tokens != 12_000 || b.state.Balances[0].Extra() != 2000 {
		t.Errorf("%+v with an extra of %d, want 12 tokens, 2 of them above the capacity", got, b.state.Balances[0].Extra())
	}
}

// TestTheEndOfAnExtraIsExact: a take that was planned behind the last take of an extra is refused where that was.
func TestTheEndOfAnExtraIsExact(t *testing.T) {
	b := &bench{T: t, world: newWorld(t)}
	never := schema.NewBucket(limitsOf(t, limiter.Custom("l", 10, 0, time.Second)), 1, epoch) // an item without a ttl, with an extra or not
	b.land(takes(t, never, epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000}))
	changes, err := plan.Adjust([]*schema.Bucket{b.state}, epoch+1000, &limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 3000, Excess: limiter.ExcessKept}, wisher, false)
	if err != nil || !b.transact(changes) {
		t.Fatal(err)
	}
	b.state = b.read(0)
	last := b.spend(1000, 1, limiter.Spend{Take: 3000})
	if !last.Exact() {
		t.Fatal("a take beside an extra commutes")
	}
	behind := b.spendOn(last.After(), 1000, 1, limiter.Spend{Limit: "l", Take: 1000})
	b.land(b.spend(1000, 2, limiter.Spend{Take: 500}))
	b.refused(last)
	b.refused(behind)
	if got := plan.Balances([]*schema.Bucket{b.state}, epoch+1000)[0].Tokens; got != 11_500 {
		t.Errorf("%d millitokens are left, want 11500", got)
	}
}

// TestAReturnedTakeOfAnExtra: a take that is rolled back gives the extra back, also where the balance was below the
// capacity after it.
func TestAReturnedTakeOfAnExtra(t *testing.T) {
	b := newBench(t)
	changes, err := plan.Adjust([]*schema.Bucket{b.state}, epoch+1000, &limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 2000, Excess: limiter.ExcessKept}, wisher, false)
	if err != nil || !b.transact(changes) {
		t.Fatal(err)
	}
	b.state = b.read(0)
	for refilled, want := range map[int64]int64{0: 12_000, 200: 12_000, 2000: 12_000} {
		st := plan.NewStage(b.state, epoch+1000, plan.Options{})
		_, r := op(b, b.state.Limits, 1, limiter.Spend{Limit: "l", Take: 5000})
		st.Weigh(r)
		st.Apply(r)
		after := st.Write(b.id(1), 1).After()
		back := plan.NewStage(after, epoch+1000+refilled, plan.Options{})
		undo := r.Undo()
		back.Weigh(undo)
		back.Apply(undo)
		got := back.Write(b.id(1), 1).After()
		if n := plan.At(got, epoch+1000+refilled).Tokens(0, epoch+1000+refilled); n != want {
			t.Errorf("%d ms after the take: %d millitokens, want %d", refilled, n, want)
		}
	}
}

// TestAnExtraBesideCarriedUseIsRefused: refill makes up for use of a greater limit before.
func TestAnExtraBesideCarriedUseIsRefused(t *testing.T) {
	b := newBench(t)
	carrying := *b.state
	carrying.Balances = []schema.Balance{b.state.Balances[0]}
	carrying.Balances[0].Carried = 1000
	for tokens, want := range map[int64]error{1000: nil, 11_000: limiter.ErrInvalid, tokenbucket.MaxAmount: limiter.ErrInvalid} {
		a := &limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: tokens, Excess: limiter.ExcessKept}
		if _, err := plan.Adjust([]*schema.Bucket{&carrying}, epoch, a, wisher, false); !errors.Is(err, want) {
			t.Errorf("%d more: %v, want %v", tokens, err, want)
		}
	}
}

// TestAnExtraBesideTakes: takes that are applied between the plan of an extra and its write do not refuse it, whether the
// limit was full or had an extra, and their tokens are taken once.
func TestAnExtraBesideTakes(t *testing.T) {
	b := newBench(t)
	a := &limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 20_000, Excess: limiter.ExcessKept}
	want := int64(10_000)
	for _, at := range []int64{1000, 1000, 1000} { // the limit is full then
		changes, err := plan.Adjust([]*schema.Bucket{b.state}, epoch+at, a, wisher, false)
		if err != nil {
			t.Fatal(err)
		}
		b.land(b.spend(at, 1, limiter.Spend{Take: 1500}))
		if !b.transact(changes) {
			t.Fatal("an extra was refused beside a take")
		}
		b.state = b.read(0)
		want += 20_000 - 1500
		if got := plan.Balances([]*schema.Bucket{b.state}, epoch+at)[0].Tokens; got != want {
			t.Fatalf("%d millitokens, want %d", got, want)
		}
	}
	b.land(b.spend(1000, 1, limiter.Spend{Take: 500}))
	if got := plan.Balances([]*schema.Bucket{b.state}, epoch+50_000)[0].Tokens; got != want-500 {
		t.Errorf("%d millitokens after refill, want %d", got, want-500)
	}
}
