package plan_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// wisher is the replica whose slot asks for leases.
const wisher = 0xabcdef01

// grown returns the shards of a bucket that was split some times.
func grown(t *rapid.T, now int64) []*schema.Bucket {
	leaves := make([]*schema.Bucket, 1, 4)
	leaves[0] = drawn(t, now)
	for range rapid.IntRange(0, 3).Draw(t, "splits") {
		i := rapid.IntRange(0, len(leaves)-1).Draw(t, "leaf")
		split, err := plan.Split(leaves[i], now, 1)
		if err != nil {
			t.Fatal(err)
		}
		made, err := plan.Make(split.After())
		if err != nil {
			t.Fatal(err)
		}
		cleared, err := plan.Clear(split.After(), 1)
		if err != nil {
			t.Fatal(err)
		}
		leaves[i] = cleared.After()
		leaves = append(leaves, made)
	}
	return leaves
}

// drawAdjustment draws an adjustment that may be made.
func drawAdjustment(t *rapid.T, capacity int64) *limiter.Adjustment {
	a := &limiter.Adjustment{Limit: "a", Kind: limiter.AdjustKind(rapid.IntRange(0, 3).Draw(t, "kind"))} // #nosec G115 -- few
	most := capacity
	if a.Kind != limiter.AdjustSet {
		most = 15 * capacity
	}
	if a.Kind != limiter.AdjustReset {
		a.Tokens = rapid.OneOf(rapid.Int64Range(0, most), rapid.Int64Range(0, capacity/8)).Draw(t, "tokens")
	}
	if a.Kind == limiter.AdjustTopUp {
		a.Excess = rapid.SampledFrom([]limiter.Excess{limiter.ExcessCut, limiter.ExcessKept}).Draw(t, "excess")
	}
	return a
}

// carries reports whether an extra was refused because a shard carries use.
func carries(t *rapid.T, leaves []*schema.Bucket, a *limiter.Adjustment, err error) bool {
	if a.Excess != limiter.ExcessKept || !errors.Is(err, limiter.ErrInvalid) {
		return false
	}
	for _, b := range leaves {
		if b.Any("a").Carried > 0 {
			return true
		}
	}
	t.Fatalf("refused without carried use: %v", err)
	return false
}

// adjusted is the balance that an adjustment leaves of a whole bucket.
func adjusted(a *limiter.Adjustment, before, capacity, floor int64) int64 {
	switch a.Kind {
	case limiter.AdjustReset:
		return capacity
	case limiter.AdjustSet:
		return a.Tokens
	case limiter.AdjustTopUp:
		if a.Excess == limiter.ExcessKept {
			return before + a.Tokens
		}
		return min(before+a.Tokens, capacity)
	case limiter.AdjustTakeOut:
	}
	return min(before, max(before-a.Tokens, floor))
}

// stateOf returns the state of limit a.
func stateOf(leaves []*schema.Bucket, now int64) limiter.LimitState {
	for _, s := range plan.Balances(leaves, now) {
		if s.Limit.Name == "a" {
			return s
		}
	}
	return limiter.LimitState{}
}

// TestAdjustmentsAddUp: each kind leaves the balance that it says, of any number of shards,
// and touches no other limit.
func TestAdjustmentsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaves := grown(t, epoch)
		now := epoch + rapid.Int64Range(0, 3000).Draw(t, "wait")
		before := stateOf(leaves, now)
		capacity := before.Limit.Capacity * limiter.Milli
		a := drawAdjustment(t, capacity)
		changes, err := plan.Adjust(leaves, now, a, wisher, false)
		if carries(t, leaves, a, err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		after := make([]*schema.Bucket, len(changes))
		for i, w := range changes {
			after[i] = w.After()
			if was, is := leaves[i].Any("day"), after[i].Any("day"); was.FullAt.Cmp(is.FullAt) != 0 || was.Carried != is.Carried {
				t.Fatalf("another limit was %+v and is %+v", was, is)
			}
			if after[i].TTL == 0 && len(leaves) == 1 && after[i].Any("a").Extra() == 0 {
				t.Fatal("the item never expires")
			}
		}
		want, slack := adjusted(a, before.Tokens, capacity, before.Limit.DebtFloor()), int64(len(leaves))
		if got := stateOf(after, now).Tokens; got < want-slack || got > want+slack {
			t.Fatalf("%s of %d at %d: %d, want %d", a.Kind.Action(), a.Tokens, before.Tokens, got, want)
		}
	})
}

// TestAdjustmentsAreApplied: a transaction leaves the planned items. A take that is applied
// before it does not refuse a reset, a set or a top-up that is not bounded. A take that was
// planned before it is not applied after it.
func TestAdjustmentsAreApplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		leaves := grown(t, epoch)
		w.put(leaves)
		before := stateOf(leaves, epoch)
		capacity := before.Limit.Capacity * limiter.Milli
		a := drawAdjustment(t, capacity)
		changes, err := plan.Adjust(leaves, epoch, a, wisher, false)
		if carries(t, leaves, a, err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		taken, late := int64(0), w.takes(leaves[0])
		if late != nil && rapid.Bool().Draw(t, "take") {
			if applied, _ := w.send(w.takes(leaves[0]), 0); applied {
				taken = 1
			}
		}
		applied := w.transact(changes)
		if !applied && (taken == 0 || a.Kind == limiter.AdjustReset || a.Kind == limiter.AdjustSet) {
			t.Fatalf("%s of %d was refused", a.Kind.Action(), a.Tokens)
		}
		if !applied {
			return
		}
		found := make([]*schema.Bucket, len(changes))
		for i, c := range changes {
			index := c.After().Shard.Index
			if found[i] = w.read(index); taken == 0 || index > 0 {
				w.sameState(c.After(), found[i])
			}
		}
		slack := int64(len(leaves))
		want := adjusted(a, before.Tokens-taken, capacity, before.Limit.DebtFloor())
		if got := stateOf(found, epoch).Tokens; got < want-slack || got > want+slack {
			t.Fatalf("%s of %d at %d: %d, want %d", a.Kind.Action(), a.Tokens, before.Tokens-taken, got, want)
		}
		if w.transact(changes) {
			t.Fatal("the adjustment was applied twice")
		}
		if late != nil {
			if applied, _ := w.send(late, 0); applied {
				t.Fatal("a take was applied that was planned before the adjustment")
			}
		}
	})
}

// put puts the items of shards.
func (w *world) put(leaves []*schema.Bucket) {
	w.Helper()
	table := tableName
	for _, b := range leaves {
		item := schema.NewBucketItem("ns1", w.bucket, b.Shard.Index)
		maps.Copy(item, b.Attributes())
		if _, err := w.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			w.Fatalf("%v", err)
		}
	}
}

// takes returns a commuting write that takes a millitoken of limit a, nil where there is none.
func (w *world) takes(b *schema.Bucket) *plan.Write {
	st := plan.NewStage(b, epoch, plan.Options{})
	_, r := op(w, b.Limits, 1, limiter.Spend{Limit: "a", Take: 1})
	if st.Weigh(r) != plan.Commutes {
		return nil
	}
	st.Apply(r)
	return st.Write(w.id(1), 1)
}

// transact applies all changes or none.
func (w *world) transact(changes []*plan.Adjusted) (applied bool) {
	w.Helper()
	writes := make([]*schema.ItemWrite, 0, len(changes))
	for _, c := range changes {
		writes = append(writes, c.Update(w.key(c.Before().Shard.Index)))
	}
	err := w.items().Transact(context.Background(), "", writes)
	if _, refused := errors.AsType[*types.TransactionCanceledException](err); err != nil && !refused {
		w.Fatalf("%v", err)
	}
	return err == nil
}

// leased returns a state of which a replica has a lease, with some of the tokens.
func leased(t *rapid.T, b *schema.Bucket, replica uint32) *schema.Bucket {
	st := plan.NewStage(b, epoch, plan.Options{})
	has := plan.At(b, epoch).Tokens(b.Limits.Find("a"), epoch)
	room := rapid.IntRange(0, schema.Parts).Draw(t, "room")
	q := plan.LeaseWrite{
		Replica: replica, Lease: &schema.Lease{Sequence: 1, Rate: rapid.IntRange(0, schema.Parts).Draw(t, "rate"), Room: room},
		Draw: make([]int64, b.Limits.Len()),
	}
	q.Draw[b.Limits.Find("a")] = rapid.Int64Range(0, max(0, has)/schema.Parts*int64(room)).Draw(t, "draw")
	if err := st.Lease(q); err != nil {
		t.Fatal(err)
	}
	return st.Write(plan.ID{}, 1).After()
}

// TestAdjustmentsCountLeasesAsFull: while there are leases, changes that do not depend on them are
// made at once. All others wait. Where one is made all the same, no more is there than the new
// balance.
func TestAdjustmentsCountLeasesAsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := leased(t, drawn(t, epoch), 7)
		before := stateOf([]*schema.Bucket{b}, epoch)
		capacity := before.Limit.Capacity * limiter.Milli
		a := drawAdjustment(t, capacity)
		changes, err := plan.Adjust([]*schema.Bucket{b}, epoch, a, wisher, false)
		if carries(t, []*schema.Bucket{b}, a, err) {
			return
		}
		lent := b.Line != schema.WholeLine()
		if err != nil && (!lent || !errors.Is(err, plan.ErrLent)) {
			t.Fatal(err)
		}
		if err == nil {
			got, want := stateOf([]*schema.Bucket{changes[0].After()}, epoch).Tokens, adjusted(a, before.Tokens, capacity, before.Limit.DebtFloor())
			if got < want-1 || got > want+1 || lent && a.Kind != limiter.AdjustTopUp && a.Kind != limiter.AdjustTakeOut {
				t.Fatalf("%s of %d at %+v: %d, want %d", a.Kind.Action(), a.Tokens, before, got, want)
			}
			return
		}
		changes, err = plan.Adjust([]*schema.Bucket{b}, epoch, a, wisher, true)
		if carries(t, []*schema.Bucket{b}, a, err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		after := stateOf([]*schema.Bucket{changes[0].After()}, epoch)
		most := adjusted(a, before.Tokens, capacity, before.Limit.DebtFloor())
		if a.Kind == limiter.AdjustReset || a.Kind == limiter.AdjustSet {
			most -= after.Leased
		}
		if after.Leased != before.Leased || after.Tokens > most+1 {
			t.Fatalf("%s of %d at %+v: %+v, want at most %d", a.Kind.Action(), a.Tokens, before, after, most)
		}
	})
}

// TestTheLastSlotGoes: the slot that asked for leases goes with the adjustment. The
// balances of all limits are the same on the line of an item without leases.
func TestTheLastSlotGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawn(t, epoch)
		for _, q := range []plan.LeaseWrite{
			{Replica: 7, Lease: &schema.Lease{Sequence: 1, Rate: 100}},
			{Replica: wisher, Lease: &schema.Lease{Sequence: 1, Demand: schema.MaxHint}},
		} {
			st := plan.NewStage(b, epoch, plan.Options{})
			if err := st.Lease(q); err != nil {
				t.Fatal(err)
			}
			b = st.Write(plan.ID{}, 1).After()
		}
		back := plan.NewStage(b, epoch+500, plan.Options{})
		if err := back.Lease(plan.LeaseWrite{Replica: 7, Seen: b.Lease(7)}); err != nil {
			t.Fatal(err)
		}
		b = back.Write(plan.ID{}, 1).After()
		now := epoch + rapid.Int64Range(500, 3000).Draw(t, "wait")
		a := drawAdjustment(t, b.Any("a").Whole.Capacity)
		changes, err := plan.Adjust([]*schema.Bucket{b}, now, a, wisher, false)
		if carries(t, []*schema.Bucket{b}, a, err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		after := changes[0].After()
		if after.Leased() || after.Line != schema.WholeLine() {
			t.Fatalf("leases %v, line %v", after.Leases, after.Line)
		}
		for _, later := range []int64{now, now + 10_000} {
			was, is := plan.At(b, later), plan.At(after, later)
			if k := b.Limits.Find("day"); was.Tokens(k, later) != is.Tokens(k, later) {
				t.Fatalf("the other limit has %d at %d, want %d", is.Tokens(k, later), later, was.Tokens(k, later))
			}
		}
		whole := stateOf([]*schema.Bucket{b}, now)
		want := adjusted(a, whole.Tokens, whole.Limit.Capacity*limiter.Milli, whole.Limit.DebtFloor())
		if got := stateOf([]*schema.Bucket{after}, now).Tokens; got < want-1 || got > want+1 {
			t.Fatalf("%s of %d at %d: %d, want %d", a.Kind.Action(), a.Tokens, whole.Tokens, got, want)
		}
	})
}

// A reset fills each shard by its own limits, where one is under newer ones yet.
func TestResetOfShardsUnderDifferentLimits(t *testing.T) {
	w := newWorld(t)
	older, newer := limitsOf(t, limiter.Custom("l", 15, 1, time.Second)), limitsOf(t, limiter.Custom("l", 75, 1, time.Second))
	_, b := w.send(takes(t, schema.NewBucket(older, 1, epoch), epoch, plan.Options{}, w.id(1), limiter.Spend{Limit: "l", Take: 1000}), 0)
	split, err := plan.Split(b, epoch+1, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, b = w.send(split, 0)
	other, err := plan.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	made, err := plan.Clear(b, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, b = w.send(made, 0)
	st := plan.NewStage(other, epoch+2, plan.Options{})
	if got, err := st.Bring(newer, 2); err != nil || got != plan.Newer {
		t.Fatal(got, err)
	}
	other = st.Write(w.id(1), 1).After()
	const now = epoch + 3_600_000
	all, err := plan.Adjust([]*schema.Bucket{b, other}, now, &limiter.Adjustment{Bucket: w.bucket, Kind: limiter.AdjustReset}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{7500, 37_500} {
		if got := plan.At(all[i].After(), now).Tokens(0, now); got != want {
			t.Errorf("shard %d has %d millitokens, want %d", i, got, want)
		}
	}
}
