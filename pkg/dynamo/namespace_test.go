package dynamo_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// owned is a fleet under load whose replicas decide by limiters: they see the state of the
// namespace.
type owned struct {
	*adjusted

	denied [3]atomic.Pointer[time.Time] // when the store last denied by the state of the namespace
}

func newOwned(t *testing.T, leases bool) *owned {
	fleet := new(owned)
	limits, err := limiter.NewLimits(adjustedLimit())
	if err != nil {
		t.Fatal(err)
	}
	fleet.adjusted = newLoaded(t, adjustedLimit(), leases, func(f *adjusted, s *dynamo.Store) asker {
		l, err := limiter.New(limiter.Config{Store: s})
		if err == nil {
			err = l.SetStatic(t.Context(), limiter.Static{System: limits, OnUnavailable: limiter.Deny})
		}
		if err != nil {
			t.Fatal(err)
		}
		bucket, denied := f.op().Bucket, &fleet.denied[slices.Index(f.stores, s)]
		return func(ctx context.Context, now time.Time) (bool, error) {
			var d limiter.Decision
			err := l.Decide(ctx, now, &limiter.Request{Namespace: bucket.Namespace, Takes: []limiter.Take{{
				Entity: bucket.Entity, Resource: bucket.Resource, Consume: []limiter.Consumption{{Limit: "l", Amount: limiter.Milli}},
			}}}, &d)
			if d.Reason == limiter.ReasonDisabled {
				denied.Store(&now)
			}
			return d.Admitted, err
		}
	})
	return fleet
}

// move changes the state of the namespace through a store, and returns when that was done.
func (f *owned) move(store int, by limiter.Switch) time.Time {
	f.Helper()
	edit := limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}
	if done, err := f.stores[store].Edit(f.Context(), time.Now(), f.op().Bucket.Namespace, edit); err != nil || !done.Changed {
		f.Fatalf("switch %d: %+v, %v", by, done, err)
	}
	return time.Now()
}

// A namespace that is deleted through one replica is denied by all within 5 s, and one that is
// recovered goes on with the same buckets: the bound holds across both.
func TestANamespaceIsDeletedAndRecoveredUnderLoad(t *testing.T) {
	for name, leases := range map[string]bool{"leases": true, "no leases": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOwned(t, leases)
				defer f.end()
				time.Sleep(3 * time.Second) // the bucket is used up
				deleted := f.move(0, limiter.DeleteNamespace)
				time.Sleep(time.Until(deleted.Add(10 * time.Second)))
				if n := f.since(deleted.Add(5*time.Second), time.Now()); n > 0 {
					t.Errorf("%d tokens were given later than 5 s after the deletion", n)
				}
				recovered := f.move(1, limiter.RecoverNamespace)
				time.Sleep(time.Until(recovered.Add(5 * time.Second)))
				if f.since(recovered, time.Now()) < 1000 {
					t.Errorf("%d tokens were given after the recovery, want the 1000 of a full bucket", f.since(recovered, time.Now()))
				}
				for i := range f.stores {
					if last := f.denied[i].Load(); last == nil || !last.After(deleted) || time.Since(*last) < time.Second {
						t.Errorf("store %d denied until %v, want from %v to %v and 4 s", i, last, deleted, recovered)
					}
				}
				f.bounded(f.began, tokens(1000))
			})
		})
	}
}

// A purge of a namespace in use counts as a reset: no replica gives a token while it deletes, also
// not one that was cut off from the table before the deletion and held a lease. After its end all
// together give a full bucket and the refill.
func TestANamespaceIsPurgedUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOwned(t, true)
		defer f.end()
		time.Sleep(3 * time.Second)
		f.links[2].cut.Store(true)
		deleted := f.move(0, limiter.DeleteNamespace)
		f.bounded(f.began, tokens(1000))
		if err := f.stores[1].Purge(t.Context(), time.Now(), f.op().Bucket.Namespace, nil); err != nil {
			t.Fatal(err)
		}
		purged := time.Now()
		if took := purged.Sub(deleted); took < 12*time.Second || took > 14*time.Second {
			t.Errorf("the purge took %v, want 12 s of waiting", took)
		}
		if n := f.since(deleted.Add(6*time.Second), purged); n > 0 {
			t.Errorf("%d tokens were given later than 6 s after the deletion", n)
		}
		f.links[2].cut.Store(false)
		time.Sleep(time.Until(purged.Add(6 * time.Second)))
		if n := f.since(purged.Add(5*time.Second), time.Now()); n > 0 {
			t.Errorf("%d tokens were given later than 5 s after the return of a replica to the purged namespace", n)
		}
		created := f.move(0, limiter.CreateNamespace)
		time.Sleep(time.Until(created.Add(5 * time.Second)))
		f.bounded(purged, tokens(1000))
		if n := f.since(purged, time.Now()); n < 1000 {
			t.Errorf("%d tokens were given from a bucket that is new, want 1000 and the refill", n)
		}
	})
}
