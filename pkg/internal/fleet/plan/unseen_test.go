package plan_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// unseen is a bucket whose item another replica has made, by a take of 1 of its 10 tokens.
type unseen struct {
	*testing.T
	*world

	limits *limiter.Limits
	write  *plan.Write // a take of 2 tokens without the state
	item   *schema.Bucket
}

func (u *unseen) Helper()                      { u.T.Helper() }
func (u *unseen) Fatalf(f string, args ...any) { u.T.Helper(); u.T.Fatalf(f, args...) }

// newUnseen returns one whose item has a change.
func newUnseen(t *testing.T, change func(*schema.ItemWrite)) *unseen {
	t.Helper()
	u := &unseen{T: t, world: newWorld(t), limits: limitsOf(t, limiter.Custom("l", 10, 1, time.Second))}
	if applied, _ := u.send(u.take(epoch, 1, 1000), 0); !applied {
		t.Fatal("the item is not made")
	}
	if change != nil {
		to := schema.NewUpdate(u.key(0))
		change(to)
		if _, err := u.items().Write(context.Background(), to); err != nil {
			t.Fatal(err)
		}
	}
	u.write = u.take(epoch+500, 2, 2000)
	return u
}

// take returns the take of a replica that has not seen the item.
func (u *unseen) take(at int64, replica uint32, millitokens int64) *plan.Write {
	u.Helper()
	return takes(u.T, schema.NewBucket(u.limits, 1, at), at, plan.Options{Scripts: true}, u.id(replica), limiter.Spend{Limit: "l", Take: millitokens})
}

// land sends the take, and requires that it is applied or refused.
func (u *unseen) land(want bool) {
	u.Helper()
	var applied bool
	if applied, u.item = u.send(u.write, 0); applied != want {
		u.Fatalf("the take is applied: %t, want %t; the item is %+v", applied, want, u.item)
	}
}

// A take from an item that its replica has not seen counts the refill up to its own time.
func TestTakeFromAnUnseenItem(t *testing.T) {
	u := newUnseen(t, nil)
	u.land(true)
	if got := plan.At(u.item, epoch+500).Tokens(0, epoch+500); got != 7500 {
		t.Errorf("%d millitokens are left, want 7500", got)
	}
	u = newUnseen(t, nil)
	u.write = u.take(epoch+60_000, 2, 2000) // it is full again
	u.land(true)
	if got := plan.At(u.item, epoch+60_000).Tokens(0, epoch+60_000); got != 8000 {
		t.Errorf("%d millitokens are left of a full bucket, want 8000", got)
	}
	const refill = 10 // seconds, of all tokens
	if least := int64(epoch/1000 + 60 + refill + 2*3600); u.item.Taken != epoch+60_000 || u.item.TTL < least {
		t.Errorf("the last take is at %d, and the ttl is %d; want it at 60000, and at least %d", u.item.Taken-epoch, u.item.TTL, least)
	}
}

// The limits of the item may be of an older generation, or of a newer one, of which they stay.
func TestGenerationsOfUnseenItems(t *testing.T) {
	for is, want := range map[int64]uint64{0: 1, 1: 1, 1 << 60: 1 << 60} {
		u := newUnseen(t, func(w *schema.ItemWrite) { w.Set(schema.AttrGeneration, schema.NumberAttribute(is)) })
		u.land(true)
		if u.item.Version.Generation != want {
			t.Errorf("generation %d becomes %d, want %d", is, u.item.Version.Generation, want)
		}
	}
}

// It is refused where it would not be right.
func TestUnseenItemsThatDoNotFit(t *testing.T) {
	n := schema.NumberAttribute[int64]
	for name, change := range map[string]func(*schema.ItemWrite){
		"other limits":     func(w *schema.ItemWrite) { w.Set(schema.AttrVersion, n(7)) },
		"half of a bucket": func(w *schema.ItemWrite) { w.Set(schema.AttrLevel, n(2)) },
		"leases": func(w *schema.ItemWrite) {
			w.Set(schema.AttrRate, n(500))
			w.Set(schema.AttrRoom, n(1000))
			w.Set(schema.AttrOffset, n(0))
		},
		"an extra": func(w *schema.ItemWrite) { w.Set(schema.LimitAttr("l", schema.LimitCarried), n(-1000)) },
		"no ttl":   func(w *schema.ItemWrite) { w.Remove(schema.AttrTTL) },
		"1.999 tokens": func(w *schema.ItemWrite) {
			w.Set(schema.LimitAttr("l", schema.LimitFullAt), schema.Product(epoch+8501, 1000*schema.Parts).Attribute())
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnseen(t, change)
			_, err := u.items().Write(context.Background(), u.world.write(u.write, 0))
			if _, refused := awsdb.ConditionItem(err); !refused {
				t.Errorf("the take is not refused: %v", err)
			}
		})
	}
}

// A write is a take from an unseen item only where it takes, and where its requests do not need to see the item.
func TestWritesThatNeedToSeeTheItem(t *testing.T) {
	u := newUnseen(t, nil)
	for name, spends := range map[string][]limiter.Spend{
		"a charge": {{Limit: "l", Take: 1000, Charge: 1}}, "a refund": {{Limit: "l", Refund: 1}, {Limit: "l", Take: 1000}},
	} {
		w := takes(t, schema.NewBucket(u.limits, 1, epoch), epoch, plan.Options{Scripts: true}, u.id(2), spends...)
		if w.Put(schema.NewBucketItem("ns1", u.bucket, 0)).OrUpdate != nil {
			t.Errorf("%s is applied to an unseen item", name)
		}
	}
	st := plan.NewStage(schema.NewBucket(u.limits, 1, epoch), epoch, plan.Options{Scripts: true})
	some := &plan.Request{Limits: u.limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Ask: 20_000}}}
	if v := st.Weigh(some); v != plan.Exact {
		t.Fatalf("verdict %d, want a write", v)
	}
	st.Apply(some)
	if st.Write(u.id(2), 1).Put(schema.NewBucketItem("ns1", u.bucket, 0)).OrUpdate != nil {
		t.Error("a request for what is there is applied to an unseen item")
	}
}

// A copy of such a take is refused, be the first one a creation or not.
func TestCopiesOfTakesFromUnseenItems(t *testing.T) {
	u := newUnseen(t, nil)
	u.land(true)
	u.land(false)
	if got := u.write.Outcome(u.item); got != plan.Landed {
		t.Errorf("the outcome is %d, want %d", got, plan.Landed)
	}
	made := u.take(epoch, 1, 1000)
	first := &unseen{T: t, world: newWorld(t), limits: u.limits, write: made}
	first.land(true)
	first.land(false)
	if got := made.Outcome(first.item); got != plan.Landed {
		t.Errorf("the outcome of a creation is %d, want %d", got, plan.Landed)
	}
	other := newUnseen(t, nil)
	_, there := other.send(other.take(epoch, 3, 10_000), 0)
	if got := other.write.Outcome(there); got != plan.Open {
		t.Errorf("the outcome of a take that may be applied yet is %d, want %d", got, plan.Open)
	}
}

// exactly sends an exact write.
func (u *unseen) exactly(at int64, change func(*plan.Stage) error) {
	u.Helper()
	st := plan.NewStage(u.item, at, plan.Options{Scripts: true})
	if err := change(st); err != nil {
		u.Fatalf("%v", err)
	}
	applied, image := u.send(st.Write(u.id(3), 1), 0)
	if u.item = image; !applied {
		u.Fatalf("an exact write is refused")
	}
}

// A lease drops the id of such a take. No copy of it is applied after the lease, and its outcome cannot be found.
func TestCopiesOfTakesFromUnseenItemsBehindALease(t *testing.T) {
	u := newUnseen(t, nil)
	u.land(true)
	u.exactly(epoch+500, func(st *plan.Stage) error {
		return st.Lease(plan.LeaseWrite{Replica: 3, Lease: &schema.Lease{Replica: 3, Sequence: 1, Rate: 100, Room: 100}, Draw: []int64{500}})
	})
	u.exactly(epoch+500, func(st *plan.Stage) error {
		return st.Lease(plan.LeaseWrite{Replica: 3, Seen: u.item.Lease(3), Draw: []int64{-500}})
	})
	if got := u.write.Outcome(u.item); got != plan.Lost {
		t.Errorf("the outcome is %d, want %d", got, plan.Lost)
	}
	u.land(false)
}

// A take is not corrected by a state under other limits.
func TestATakeFromAnUnseenItemUnderNewLimits(t *testing.T) {
	u := newUnseen(t, nil)
	st := plan.NewStage(schema.NewBucket(u.limits, 1, epoch+500), epoch+500, plan.Options{Scripts: true})
	_, r := op(t, u.limits, 1, limiter.Spend{Limit: "l", Take: 2000})
	st.Weigh(r)
	st.Apply(r)
	u.write = st.Write(u.id(2), 1)
	u.land(true)
	u.exactly(epoch+600, func(st *plan.Stage) error {
		_, err := st.Bring(limitsOf(t, limiter.Custom("l", 10, 60, time.Minute)), 2)
		return err
	})
	u.write.Settle(u.item)
	if sp := r.Spends[0]; sp.Found != 10_000 || sp.Left.Tokens != 8000 {
		t.Errorf("the take is told that it found %d and left %d, want what was planned", sp.Found, sp.Left.Tokens)
	}
}

// Requests of one write are told what the take of another replica left, also one that looks before the first take.
func TestALookBeforeATakeAboveAFloor(t *testing.T) {
	u, o := newUnseen(t, nil), plan.Options{Scripts: true}
	u.land(true)
	now, base := int64(epoch+60_000), u.item // full again
	two := limitsOf(t, limiter.Custom("l", 10, 1, time.Second))
	st := plan.NewStage(base, now, o)
	told := make([]*plan.Request, 0, 2)
	for _, sp := range []limiter.Spend{{Limit: "l", Look: true}, {Limit: "l", Take: 1000}} {
		_, r := op(t, two, 1, sp)
		st.Weigh(r)
		st.Apply(r)
		told = append(told, r)
	}
	u.send(takes(t, base, now, o, u.id(1), limiter.Spend{Limit: "l", Take: 4000}), 0)
	u.write = st.Write(u.id(2), 1)
	u.land(true)
	u.write.Settle(u.item)
	if look, take := told[0].Spends[0], told[1].Spends[0]; look.Found != 6000 || take.Found != 6000 || take.Left.Tokens != 5000 {
		t.Errorf("they are told that they found %d and %d, and left %d; want 6000, 6000 and 5000", look.Found, take.Found, take.Left.Tokens)
	}
}
