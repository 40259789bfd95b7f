package plan_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A turn commutes with all writes that come before it but another turn, and no write that was planned before
// it is applied after it. The next exact write is planned on its reply.
func TestATurnEndsWritesUnderWay(t *testing.T) {
	b := newBench(t)
	take := func(replica uint32) *plan.Write { return b.spend(500, replica, limiter.Spend{Take: 1000}) }
	turnFor := func(replica uint32, own bool) *plan.Write {
		return plan.Turn(b.state, b.id(replica), 7*time.Millisecond+time.Microsecond, 1, own)
	}
	turn := func(replica uint32) *plan.Write { return turnFor(replica, true) }
	first, other, before, late, exact := turn(2), turn(3), take(4), take(5), b.bring(500)
	b.land(before)
	b.refused(exact)
	was := b.state
	b.land(first)
	b.refused(late)
	b.refused(other)
	b.refused(exact)
	want := schema.Turn{ID: first.Write, Hold: 7 * time.Millisecond}
	if b.state.Turn != want {
		t.Errorf("the item shows the turn %+v, want %+v", b.state.Turn, want)
	}
	if b.state.Shard.Epoch != was.Shard.Epoch+1 || b.state.Balances[0].FullAt.Cmp(was.Balances[0].FullAt) != 0 {
		t.Errorf("the epoch is %d after %d, and the balance %v after %v", b.state.Shard.Epoch, was.Shard.Epoch, b.state.Balances[0].FullAt, was.Balances[0].FullAt)
	}
	b.land(take(5))
	if b.state.Turn != want {
		t.Error("a take ended the turn")
	}
	seen, shared, later := turn(6), turnFor(9, false), b.state.Shard.Epoch
	b.land(b.bring(600))
	if b.state.Turn != (schema.Turn{}) {
		t.Errorf("an exact write leaves the turn %+v", b.state.Turn)
	}
	b.land(b.lease(700, 2, 400, 400, 2000))
	b.refused(shared)
	b.land(seen)
	if b.state.Turn.ID != seen.Write || b.state.Shard.Epoch <= later+1 {
		t.Errorf("a turn that was asked for before two exact writes left the turn %+v and the epoch %d", b.state.Turn, b.state.Shard.Epoch)
	}
	own, third := turn(7), turn(8)
	b.land(own)
	b.refused(third)
}

// A turn is as long as the replica asks for, within its bounds.
func TestHold(t *testing.T) {
	const ms = time.Millisecond
	for trip, want := range map[time.Duration]time.Duration{0: 2 * ms, ms: 2 * ms, 10 * ms: 15 * ms, time.Second: schema.MaxHold} {
		if got := plan.Hold(trip); got != want {
			t.Errorf("for a round trip of %v: %v, want %v", trip, got, want)
		}
	}
}

// The mark that newer limits wait commutes with takes, and is applied once for each
// generation.
func TestTheMarkOfNewerLimitsCommutes(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	mark := func(generation uint64) *plan.Write {
		st := plan.NewStage(b.state, epoch+500, plan.Options{})
		got, err := st.Bring(limitsOf(t, limiter.PerSecond("l", 20)), generation)
		if err != nil || got != plan.Pending || st.Exact() {
			t.Fatalf("Bring: %d, %v, exact %t", got, err, st.Exact())
		}
		if !st.Marks() {
			return nil
		}
		return st.Write(b.id(1), 1)
	}
	first, again, take := mark(7), mark(7), b.spend(500, 3, limiter.Spend{Take: 1000})
	b.land(take)
	landed, image := b.send(first, 0)
	if !landed || image.Pending != 7 {
		t.Fatalf("landed %t, pending %d", landed, image.Pending)
	}
	if got := first.On(take.After()).Pending; got != 7 {
		t.Errorf("the next write is planned on pending %d, want 7", got)
	}
	b.refused(again)
	b.state = image
	if mark(7) != nil {
		t.Error("the same mark is made twice")
	}
	b.land(mark(8))
	if b.state.Pending != 8 {
		t.Errorf("pending %d, want 8", b.state.Pending)
	}
	b.land(b.lease(600, 2, 0, 0, -2000))
	if b.state.Pending != 0 {
		t.Errorf("pending %d without leases", b.state.Pending)
	}
}

// A write that gives an item a ttl raises the epoch: a charge that was planned while there was none has
// no condition on it.
func TestANewTTLRaisesTheEpoch(t *testing.T) {
	b := &bench{T: t, world: newWorld(t)}
	slow := limitsOf(t, limiter.Custom("l", 300, 1, 365*24*time.Hour))
	b.land(takes(t, schema.NewBucket(slow, 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000}))
	b.land(b.lease(500, 2, 400, 400, 2000))
	if b.state.TTL != 0 {
		t.Fatalf("ttl %d of an item that may need 300 years", b.state.TTL)
	}
	epochBefore := b.state.Shard.Epoch
	b.land(b.lease(600, 2, 0, 0, 0)) // all its tokens are spent, and the bucket is known to have the others
	if b.state.TTL == 0 || b.state.Shard.Epoch == epochBefore {
		t.Errorf("ttl %d at epoch %d after %d", b.state.TTL, b.state.Shard.Epoch, epochBefore)
	}
}

// Only writes that commute overtake an exact write again and again.
func TestOvertaken(t *testing.T) {
	b := newBench(t)
	exact, take := b.bring(500), b.spend(500, 3, limiter.Spend{Take: 1000})
	b.land(take)
	if !exact.Overtaken(b.state) || take.Overtaken(b.state) || exact.Overtaken(nil) {
		t.Error("a take came before the exact write")
	}
	b.land(b.bring(500))
	if exact.Overtaken(b.state) {
		t.Error("another exact write came before")
	}
}

// A charge that was decided under the old limits is booked under them by the write that changes them. That
// includes a limit that is gone with the change.
func TestALimitChangesBehindWhatIsOwed(t *testing.T) {
	x, y := limiter.PerSecond("x", 10), limiter.PerSecond("y", 10)
	b := &bench{T: t, world: newWorld(t)}
	both := limitsOf(t, x, y)
	b.land(takes(t, schema.NewBucket(both, 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "x", Take: 1000}))
	stage := plan.NewStage(b.state, epoch, plan.Options{})
	_, owed := op(t, both, 1, limiter.Spend{Limit: "x", Charge: 2000}, limiter.Spend{Limit: "y", Charge: 3000})
	if verdict := stage.Weigh(owed); verdict != plan.Commutes {
		t.Fatalf("verdict %d", verdict)
	}
	stage.Apply(owed)
	next := limitsOf(t, limiter.PerSecond("x", 20))
	if _, err := stage.Bring(next, 2); err == nil {
		t.Fatal("limits are brought behind a request")
	}
	stage.Fold()
	if brought, err := stage.Bring(next, 2); err != nil || brought != plan.Newer {
		t.Fatalf("Bring: %d, %v", brought, err)
	}
	w := stage.Write(b.id(2), 1)
	b.land(w)
	if got := plan.At(b.state, epoch).Tokens(0, epoch); got != 17_000 {
		t.Errorf("%d millitokens of x, want 17000: the use stays", got)
	}
	if gone := b.state.Any("y"); gone == nil || !gone.Dormant {
		t.Errorf("y is %+v, want a dormant limit", gone)
	}
	for limit, want := range map[string]int64{"x": 3000, "y": 3000} {
		if got := b.consumedOf(limit); got != want {
			t.Errorf("%d of %s are counted, want %d", got, limit, want)
		}
	}
	b.refused(w)
}

// A shard that was split since a take has no room for all of it. The excess is reported.
func TestWhatASplitShardHasNoRoomForIsTold(t *testing.T) {
	b := newBench(t) // 10 a second
	take := b.spend(1000, 1, limiter.Spend{Take: 8000})
	b.land(take)
	b.land(b.must(plan.Split(b.state, epoch+1000, 1)))
	back := b.spend(1000, 1, limiter.Spend{Refund: 8000})
	b.land(back)
	if got := back.Overfilled(b.state); got != 4000 {
		t.Errorf("%d millitokens have no room, want 4000", got)
	}
	again := b.spend(1000, 1, limiter.Spend{Take: 1000})
	b.land(again)
	if got := again.Overfilled(b.state); got != 0 {
		t.Errorf("%d millitokens of a take have no room", got)
	}
}

// A take after such a refund makes the write exact. That write leaves a state without any excess, and
// reports it all the same.
func TestWhatAnExactWriteHasNoRoomForIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(b *bench) // leaves room for fewer tokens than come back
		want   int64
	}{
		"split":  {func(b *bench) { b.land(b.must(plan.Split(b.state, epoch+1000, 1))) }, 4000},
		"leased": {func(b *bench) { b.land(b.lease(1000, 2, 500, 500, 1000)) }, 4000},
		"whole":  {func(b *bench) { b.land(b.spend(1000, 1, limiter.Spend{Refund: 1000})) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t) // 10 a second
			b.land(b.spend(1000, 1, limiter.Spend{Take: 8000}))
			tc.before(b)
			stage := plan.NewStage(b.state, epoch+1000, plan.Options{})
			for _, sp := range []limiter.Spend{{Limit: "l", Refund: 8000}, {Limit: "l", Take: 1000}} {
				_, r := op(t, b.state.Limits, 1, sp)
				stage.Weigh(r)
				stage.Apply(r)
			}
			w := stage.Write(b.id(1), 1)
			if !w.Exact() {
				t.Fatal("the write commutes")
			}
			b.land(w)
			if got := w.Overfilled(b.state); got != tc.want {
				t.Errorf("%d millitokens have no room, want %d", got, tc.want)
			}
		})
	}
}

// A lease that was granted since a take has the room that its tokens came from. The centre has no room
// for all of them. The excess is reported.
func TestWhatALeasedItemHasNoRoomForIsTold(t *testing.T) {
	b := newBench(t) // 10 a second
	b.land(b.spend(1000, 1, limiter.Spend{Take: 8000}))
	b.land(b.lease(1000, 2, 700, 700, 0))
	back := b.spend(1000, 1, limiter.Spend{Refund: 8000})
	b.land(back)
	if got := back.Overfilled(b.state); got != 7000 {
		t.Errorf("%d millitokens have no room, want 7000", got)
	}
}
