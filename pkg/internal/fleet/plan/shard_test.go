package plan_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// drawn is a bucket in a random state at a time: with some use, carried or not.
func drawn(t *rapid.T, now int64) *schema.Bucket {
	l := limiter.Custom("a", rapid.Int64Range(33, 1000).Draw(t, "capacity"), rapid.Int64Range(1, 1000).Draw(t, "refill"), time.Duration(rapid.Int64Range(1000, 5000).Draw(t, "period"))*time.Millisecond)
	b := schema.NewBucket(limitsOf(t, l, limiter.PerDay("day", 1000)), 1, now)
	b.Serial = 1
	for i := range b.Balances {
		of := &b.Balances[i]
		room := of.Share.Capacity * of.Share.Period * schema.Parts
		of.FullAt = of.FullAt.Add(schema.UnitsOf(rapid.Int64Range(-room, 2*room).Draw(t, "used")))
		of.Carried = rapid.SampledFrom([]int64{0, 0, 1, 777}).Draw(t, "carried")
	}
	return b
}

// unitsAt returns the tokens and the use of a limit at now, for one shard of level. A unit
// is 1/(period·1000) of the whole limit's millitoken.
func unitsAt(b *schema.Bucket, name string, now int64) (tokens, use *big.Rat) {
	v := plan.At(b, now)
	i := b.Limits.Find(name)
	at, p := v.Centre[i].Refill(v.Params[i], now), v.Params[i]
	part := big.NewRat(at.Remainder, p.Period)
	tokens = new(big.Rat).SetInt64(at.Tokens)
	use = new(big.Rat).SetInt64(p.Capacity + at.Carried - at.Tokens)
	use.Sub(use, part)
	if at.Tokens < p.Capacity {
		tokens.Add(tokens, part)
	}
	return tokens, use
}

func isFull(b *schema.Bucket, name string, now int64) bool {
	v, i := plan.At(b, now), b.Limits.Find(name)
	return v.Tokens(i, now) >= v.Params[i].Capacity
}

// TestHalvesAreTheWhole: a shard and the one that is split off have together the tokens
// that it had, and refill as it does. Merged they are the same shard again.
func TestHalvesAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawn(t, epoch)
		at := epoch + rapid.Int64Range(0, 3000).Draw(t, "wait")
		split, err := plan.Split(before, at, 1)
		if err != nil {
			t.Fatal(err)
		}
		stays := split.After()
		leaves, err := plan.Make(stays)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "day"} {
			whole, _ := unitsAt(before, name, at)
			one, oneUse := unitsAt(stays, name, at)
			other, otherUse := unitsAt(leaves, name, at)
			if both := one.Add(one, other); both.Cmp(whole) != 0 {
				t.Fatalf("%s: both halves have %v, want %v", name, both, whole)
			}
			if _, use := unitsAt(before, name, at); oneUse.Add(oneUse, otherUse).Cmp(use) < 0 {
				t.Fatalf("%s: both halves have a use of %v, want %v at least", name, oneUse, use)
			}
		}
		merged(t, before, stays, leaves, at)
	})
}

// merged merges two halves and requires the balance of one bucket.
func merged(t *rapid.T, before, stays, leaves *schema.Bucket, at int64) {
	cleared, err := plan.Clear(stays, 1)
	if err != nil {
		t.Fatal(err)
	}
	retired, err := plan.Retire(leaves, at, 1)
	if err != nil {
		t.Fatal(err)
	}
	later := at + rapid.Int64Range(0, 3000).Draw(t, "until merged")
	absorbed, err := plan.Absorb(cleared.After(), retired.After(), later, 1)
	if err != nil {
		t.Fatal(err)
	}
	after := absorbed.After()
	if after.Shard.Level != 1 || after.Shard.Epoch <= leaves.Shard.Epoch || after.Shard.Epoch <= stays.Shard.Epoch || after.Shard.Births != before.Shard.Births {
		t.Fatalf("the merged shard is %+v", after.Shard)
	}
	for _, name := range []string{"a", "day"} {
		whole, use := unitsAt(before, name, later)
		got, gotUse := unitsAt(after, name, later)
		if got.Cmp(whole) > 0 {
			t.Fatalf("%s: the merged shard has %v, one bucket %v", name, got, whole)
		}
		if gotUse.Cmp(use) < 0 {
			t.Fatalf("%s: the merged shard has a use of %v, one bucket %v", name, gotUse, use)
		}
		if isFull(stays, name, later) || isFull(leaves, name, later) {
			continue // a full half loses refill
		}
		unit := big.NewRat(1, plan.At(before, at).Params[before.Limits.Find(name)].Period)
		if short := whole.Sub(whole, got); short.Cmp(unit) > 0 {
			t.Fatalf("%s: the merged shard has %v, %v less than one bucket", name, got, short)
		}
	}
}

// TestShardsOfAllLevelsAreTheBucket: split down to 32 shards, a bucket that is empty, or
// full, has as much in all of them together.
func TestShardsOfAllLevelsAreTheBucket(t *testing.T) {
	for _, used := range []int64{0, 20_000_001, 37_123_456, 40_000_000} {
		limits := limitsOf(t, limiter.Custom("a", 40_000, 77, time.Second))
		whole := schema.NewBucket(limits, 1, epoch)
		whole.Serial = 1
		of := &whole.Balances[0]
		of.FullAt = of.FullAt.Add(schema.Product(used, of.Share.Period*schema.Parts))
		shards := []*schema.Bucket{whole}
		for len(shards) < schema.MaxShards {
			next := make([]*schema.Bucket, 0, 2*len(shards))
			for _, b := range shards {
				w, err := plan.Split(b, epoch, 0)
				if err != nil {
					t.Fatal(err)
				}
				other, err := plan.Make(w.After())
				if err != nil {
					t.Fatal(err)
				}
				cleared, err := plan.Clear(w.After(), 0)
				if err != nil {
					t.Fatal(err)
				}
				next = append(next, cleared.After(), other)
			}
			shards = next
		}
		sum := int64(0)
		for _, b := range shards {
			sum += plan.At(b, epoch).Centre[0].Tokens
		}
		if want := 40_000*tokenbucket.Milli - used; sum != want {
			t.Errorf("%d shards have %d millitokens, want %d", len(shards), sum, want)
		}
		if _, err := plan.Split(shards[0], epoch, 0); !errors.Is(err, plan.ErrShard) {
			t.Errorf("a split of one of %d shards: %v, want %v", len(shards), err, plan.ErrShard)
		}
	}
}

// TestALeaseMovesWhatItSays: the centre and the holder have together as much after a lease
// write as before. All parts of the rate and of the room are in one of them.
func TestALeaseMovesWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, at := drawn(t, epoch), epoch+rapid.Int64Range(0, 3000).Draw(t, "wait")
		var lease *schema.Lease
		for sequence := range uint16(rapid.IntRange(1, 6).Draw(t, "writes")) { // #nosec G115 -- few
			st := plan.NewStage(b, at, plan.Options{})
			before := plan.At(b, at)
			had := schema.Lease{}
			if lease != nil {
				had = *lease
			}
			next := &schema.Lease{Replica: 1, Sequence: sequence}
			next.Rate = rapid.IntRange(0, b.Line.Rate+had.Rate).Draw(t, "rate")
			next.Room = rapid.IntRange(0, b.Line.Room+had.Room).Draw(t, "room")
			if rapid.IntRange(0, 3).Draw(t, "back") == 0 {
				next = nil
			}
			q := plan.LeaseWrite{Replica: 1, Seen: lease, Lease: next, Draw: make([]int64, 2)}
			for i := range q.Draw {
				q.Draw[i] = rapid.Int64Range(-1000, max(0, before.Tokens(i, at))).Draw(t, "draw")
			}
			if err := st.Lease(q); err != nil {
				t.Fatal(err)
			}
			w := st.Write(plan.ID{Write: schema.NewWriteID(1, uint64(sequence)+1)}, 1)
			if w == nil {
				t.Fatal("there is no write")
			}
			b, lease = w.After(), next
			moved(t, before, plan.At(b, at), b, q.Draw, at)
			at += rapid.Int64Range(0, 1000).Draw(t, "until the next")
		}
	})
}

// moved requires the centre to have its tokens of before, less the drawn ones, as far as
// it has room for them.
func moved(t *rapid.T, before, after *plan.View, b *schema.Bucket, drawn []int64, at int64) {
	rate, room := b.Line.Rate, b.Line.Room
	for _, l := range b.Leases {
		rate, room = rate+l.Rate, room+l.Room
	}
	if rate != schema.Parts || room != schema.Parts {
		t.Fatalf("all have %d parts of the rate and %d of the room, want %d", rate, room, schema.Parts)
	}
	for i, n := range drawn {
		had, has := before.Centre[i].Refill(before.Params[i], at), after.Centre[i].Refill(after.Params[i], at)
		if want := min(had.Tokens-n, after.Params[i].Capacity); has.Tokens != want && has.Tokens != want-1 {
			t.Fatalf("the centre has %d millitokens, want %d less %d, and room for %d", has.Tokens, had.Tokens, n, after.Params[i].Capacity)
		}
		if has.Carried > had.Carried {
			t.Fatalf("the centre carries a use of %d, and had one of %d", has.Carried, had.Carried)
		}
	}
}
