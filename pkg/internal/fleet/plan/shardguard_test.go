package plan_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// made puts the other half of a split, and reports whether it was applied.
func (b *bench) made(other *schema.Bucket) bool {
	b.Helper()
	_, err := b.items().Write(context.Background(), plan.PutMade(other, schema.NewBucketItem("ns1", b.bucket, other.Shard.Index)))
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return false
	}
	if err != nil {
		b.Fatalf("%v", err)
	}
	return true
}

// TestAShardIsMadeOnce: the other half of a split is made where there is none, or in place
// of a retired one of an earlier split. It is never made again.
func TestAShardIsMadeOnce(t *testing.T) {
	b := newBench(t)
	cycle := func() (other, retired *schema.Bucket) {
		b.land(b.must(plan.Split(b.state, epoch, 1)))
		other, err := plan.Make(b.state)
		if err != nil {
			t.Fatal(err)
		}
		if !b.made(other) {
			t.Fatal("the other half was refused")
		}
		if b.made(other) {
			t.Fatal("the other half was made again while it lives")
		}
		b.land(b.must(plan.Clear(b.state, 1)))
		retire := b.must(plan.Retire(other, epoch, 1))
		if landed, _ := b.send(retire, 1); !landed {
			t.Fatal("the retirement was refused")
		}
		return other, retire.After()
	}
	first, retired := cycle()
	if b.made(first) {
		t.Fatal("the other half was made again from the same split")
	}
	b.land(b.must(plan.Absorb(b.state, retired, epoch, 1)))
	if second, _ := cycle(); b.made(first) || second.Shard.Epoch <= retired.Shard.Epoch {
		t.Fatal("a half of an earlier split was made again")
	}
}

// TestAShardIsAbsorbedOnce: the same retired shard is not absorbed again, not even by a copy of
// the write, or after another split.
func TestAShardIsAbsorbedOnce(t *testing.T) {
	b := newBench(t)
	b.land(b.must(plan.Split(b.state, epoch, 1)))
	other, err := plan.Make(b.state)
	if err != nil {
		t.Fatal(err)
	}
	b.land(b.must(plan.Clear(b.state, 1)))
	retired := b.must(plan.Retire(other, epoch, 1)).After()
	absorb := b.must(plan.Absorb(b.state, retired, epoch, 1))
	b.land(absorb)
	b.refused(absorb)
	b.land(b.must(plan.Split(b.state, epoch, 1)))
	b.land(b.must(plan.Clear(b.state, 1)))
	if _, err := plan.Absorb(b.state, retired, epoch, 1); !errors.Is(err, plan.ErrShard) {
		t.Errorf("absorbed again: %v, want %v", err, plan.ErrShard)
	}
}

// TestNoPlanIsBeforeTheState: a slow clock plans at the latest time that the states show. So it
// refills nothing that a faster one had no room for.
func TestNoPlanIsBeforeTheState(t *testing.T) {
	b := newBench(t)
	b.land(b.spend(5000, 2, limiter.Spend{Take: 1000})) // it was full until then
	if got := plan.NewStage(b.state, epoch+3000, plan.Options{}).Now(); got != epoch+5000 {
		t.Errorf("the stage is at %d ms, want 5000", got-epoch)
	}
	split := b.must(plan.Split(b.state, epoch+3000, 1))
	if got := split.After(); got.At != epoch+5000 || got.MovedAt != epoch+5000 {
		t.Errorf("the split is at %d and %d ms, want 5000", got.At-epoch, got.MovedAt-epoch)
	}
	b.land(split)
	other, err := plan.Make(b.state)
	if err != nil {
		t.Fatal(err)
	}
	b.land(b.must(plan.Clear(b.state, 1)))
	retired := b.must(plan.Retire(other, epoch+9000, 1)).After()
	b.land(b.spend(5000, 4, limiter.Spend{Take: 2000}))
	absorb := b.must(plan.Absorb(b.state, retired, epoch+5000, 1)).After()
	if absorb.At != epoch+9000 {
		t.Errorf("the merge is at %d ms, want 9000", absorb.At-epoch)
	}
	if again := b.must(plan.Retire(other, epoch-9000, 1)).After(); again.At != epoch+5000 {
		t.Errorf("the retirement is at %d ms, want 5000", again.At-epoch)
	}
}

// TestLimitsChangeWhileAShardIsMade: the tokens that wait for the other half are refilled
// under the old limits until they change, and under the new ones from then on.
func TestLimitsChangeWhileAShardIsMade(t *testing.T) {
	b := newBench(t)
	b.land(b.must(plan.Split(b.state, epoch, 1))) // both are empty, and have 5 tokens a second
	st := plan.NewStage(b.state, epoch+400, plan.Options{})
	if _, err := st.Bring(limitsOf(t, limiter.Custom("l", 1000, 20, time.Second)), 2); err != nil {
		t.Fatal(err)
	}
	b.land(st.Write(b.id(2), 1))
	other, err := plan.Make(b.state)
	if err != nil {
		t.Fatal(err)
	}
	const raised = (1000 - 10) / 2 * tokenbucket.Milli
	for name, half := range map[string]*schema.Bucket{"the shard": b.state, "the other half": other} {
		if got := plan.At(half, epoch+400).Tokens(0, epoch+400); got != 2000+raised {
			t.Errorf("%s has %d millitokens, want 2000 and the %d that its capacity was raised by", name, got, raised)
		}
		if got := plan.At(half, epoch+500).Tokens(0, epoch+500); got != 3000+raised {
			t.Errorf("100 ms later %s has %d millitokens, want %d", name, got, 3000+raised)
		}
	}
}

// A quota that is lowered while the other half of a split is on its way counts the half's use in full: it is
// below 0, as the shard's own balance is.
func TestAQuotaIsLoweredWhileAShardIsMade(t *testing.T) {
	quota := func(tokens int64) *limiter.Limits {
		return limitsOf(t, limiter.Custom("l", tokens, 0, time.Hour))
	}
	b := &bench{T: t, world: newWorld(t)}
	b.land(takes(t, schema.NewBucket(quota(1000), 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 600 * tokenbucket.Milli}))
	b.land(b.must(plan.Split(b.state, epoch, 1)))
	st := plan.NewStage(b.state, epoch+400, plan.Options{})
	if _, err := st.Bring(quota(100), 2); err != nil {
		t.Fatal(err)
	}
	b.land(st.Write(b.id(2), 1))
	other, err := plan.Make(b.state)
	if err != nil {
		t.Fatal(err)
	}
	for name, half := range map[string]*schema.Bucket{"the shard": b.state, "the other half": other} {
		if got := plan.At(half, epoch+400).Tokens(0, epoch+400); got != -250*tokenbucket.Milli {
			t.Errorf("%s has %d millitokens, want -250000", name, got)
		}
	}
}

// TestACopyOfAChargeBehindAnotherIsRefused: the id that a charge rests on never comes back.
func TestACopyOfAChargeBehindAnotherIsRefused(t *testing.T) {
	b := newBench(t)
	b.land(b.spend(0, 2, limiter.Spend{Charge: 1}))
	w := b.spend(0, 2, limiter.Spend{Charge: 1})
	b.land(w)
	b.land(b.spend(0, 2, limiter.Spend{Charge: 1}))
	b.refused(w)
}
