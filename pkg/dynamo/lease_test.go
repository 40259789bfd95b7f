package dynamo_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// withLeases has a store take tokens in advance.
func withLeases(cfg *dynamo.Config) { cfg.Leases = true }

// warm asks for a token of each bucket until the store holds leases of all of them, and
// returns how many it took of each.
func warm(t *testing.T, s *dynamo.Store, now time.Time, ops ...limiter.Op) (taken int64) {
	t.Helper()
	for range 20 {
		if taken++; s.Stats().Leases == int64(len(ops)) {
			return taken - 1
		}
		for _, o := range ops {
			o.Spends = []limiter.Spend{{Limit: o.Spends[0].Limit, Take: tokens(1)}}
			mustTake(t, s, now, true, o)
		}
	}
	t.Fatalf("20 requests for a token in no time, and no lease: %+v", s.Stats())
	return 0
}

// leasedOf returns the attributes of the one bucket's item that are about leases, save
// those that say that there are none.
func leasedOf(t *testing.T, db *dynamofake.DB) map[string]string {
	t.Helper()
	item := bucketItem(t, db)
	maps.DeleteFunc(item, func(name, value string) bool {
		return !strings.HasPrefix(name, "ls_") && (!strings.HasSuffix(name, "_h") || value == "0")
	})
	return item
}

func wantNothingLeased(t *testing.T, db *dynamofake.DB) {
	t.Helper()
	if got := leasedOf(t, db); len(got) > 0 {
		t.Errorf("out on lease: %v, want nothing", got)
	}
}

// A hot bucket is decided from memory: of thousands of decisions few write, and none is
// denied that there are tokens for.
func TestAHotBucketIsServedFromALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		l := limiter.Custom("l", 100_000, 10_000, time.Second)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		const callers, all = 64, 10_000
		var asked, denied atomic.Int64
		made := calls(db, func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for asked.Add(1) <= all {
						ok, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(1)})})
						if err != nil {
							t.Error(err)
						}
						if !ok {
							denied.Add(1)
						}
					}
				})
			}
			wg.Wait()
		})
		t.Logf("%d decisions in %v: %v, %+v", all, time.Since(began), made, s.Stats())
		if made["UpdateItem"] > all/500 || made["GetItem"] > 0 {
			t.Errorf("%v for %d decisions, want at most 0.002 writes each and no read", made, all)
		}
		if denied.Load() > 0 {
			t.Errorf("%d of %d were denied, with 100,000 tokens in the bucket", denied.Load(), all)
		}
	})
}

// A lease that is parked while its bucket fills up keeps its place in the capacity: what
// is taken at one moment then, by its holder and by others, is no more than that.
func TestAParkedLeaseThenABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a, b := newStore(t, db, withLeases), newStore(t, db, withLeases)
		defer closing(t, a, b)
		const capacity = 1000
		l := limiter.Custom("l", capacity, 100, time.Second)
		o := op(t, "e", l, limiter.Spend{Take: tokens(1)})
		warm(t, a, t0(), o)
		for range 300 { // so that the lease is worth something
			mustTake(t, a, t0(), true, o)
		}
		later, admitted := after(1000), 0
		for _, s := range []*dynamo.Store{b, a, b, a} {
			for range 2 * capacity {
				ok, err := s.Take(t.Context(), later, []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(1)})})
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					admitted++
				}
			}
		}
		if least := capacity - 300; admitted > capacity || admitted < least { // what was spent of the lease was not reported
			t.Errorf("%d admitted at one moment, want %d to %d", admitted, least, capacity)
		}
	})
}

// Child and parent are decided from leases of both without a call, all or nothing; and
// children share their parent's.
func TestChildAndParentAreDecidedFromLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		bucket := func(name string, capacity int64) limiter.Op {
			return op(t, name, limiter.PerDay("l", capacity), limiter.Spend{Take: tokens(1)})
		}
		one, two, parent := bucket("one", 10_000), bucket("two", 10_000), bucket("parent", 100_000)
		taken := warm(t, s, t0(), one, two, parent)
		decided := func(ops ...limiter.Op) {
			t.Helper()
			wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, ops...) }), map[string]int{})
			for i := range ops {
				if sp := &ops[i].Spends[0]; !sp.Held || sp.Exceeded || sp.Limits == nil || sp.Bucket.Tokens <= 0 || ops[i].Shard != 1 {
					t.Errorf("%s: told %+v of shard %d", ops[i].Bucket.Entity, *sp, ops[i].Shard)
				}
			}
		}
		decided(one, parent)
		decided(two, parent)
		if got := s.Stats().Served; got < 4 {
			t.Errorf("%d ops were served from leases, want at least the 4 of the last calls", got)
		}

		// What no lease covers is decided by the lanes, and takes nothing when denied.
		greedy := bucket("one", 10_000)
		greedy.Spends[0].Take = tokens(10_001)
		mustTake(t, s, t0(), false, greedy, parent)
		synctest.Wait()
		closing(t, s)
		plain := newStore(t, db, nil)
		defer closing(t, plain)
		wantBalance(t, plain, t0(), parent, 100_000-taken-2)
		wantBalance(t, plain, t0(), one, 10_000-taken-1)
	})
}

// A store that closes gives back all that it holds: nothing is out then, and nothing is lost.
func TestCloseGivesBackLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s, plain := newStore(t, db, withLeases), newStore(t, db, nil)
		defer closing(t, plain)
		o := op(t, "e", limiter.PerDay("l", 10_000), limiter.Spend{Take: tokens(1)})
		taken := warm(t, s, t0(), o)
		for range 5 {
			mustTake(t, s, t0(), true, o)
		}
		if len(leasedOf(t, db)) != 2 {
			t.Errorf("out on lease: %v, want a slot and its sum", leasedOf(t, db))
		}
		closing(t, s)
		wantNothingLeased(t, db)
		wantBalance(t, plain, t0(), o, 10_000-taken-5)
		if got := s.Stats(); got.Leases != 0 || got.Returned != 1 {
			t.Errorf("%+v, want one lease, returned", got)
		}
	})
}

// Close waits no longer than it is told for leases that nobody takes back.
func TestCloseGivesUpOnLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Leases, cfg.Attempt = true, 100*time.Millisecond })
		warm(t, s, t0(), op(t, "e", limiter.PerDay("l", 10_000), limiter.Spend{Take: tokens(1)}))
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.HoldRequest} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("Close took %v, with a second to do so", took)
		}
	})
}

// What is not used is given back, by the store itself.
func TestAnIdleLeaseIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s, plain := newStore(t, db, withLeases), newStore(t, db, nil)
		defer closing(t, s, plain)
		o := op(t, "e", limiter.PerDay("l", 10_000), limiter.Spend{Take: tokens(1)})
		taken := warm(t, s, t0(), o)
		for range 100 { // hot: its lease is for the shortest time
			mustTake(t, s, t0(), true, o)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if s.Stats().Leases != 1 {
			t.Fatalf("%+v, want a lease while it is used", s.Stats())
		}
		made := calls(db, func() { time.Sleep(400 * time.Millisecond) })
		wantCalls(t, made, map[string]int{"UpdateItem": 1})
		wantNothingLeased(t, db)
		wantBalance(t, plain, t0(), o, 10_000-taken-100)
		if made := calls(db, func() { time.Sleep(10 * time.Second) }); made["UpdateItem"]+made["GetItem"] > 0 {
			t.Errorf("%v while nothing is held", made)
		}
	})
}

// What a process held that is no more is free for others after the term, and not before.
func TestACrashedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		gate := dynamofake.NewGate()
		cut := &intercept{DB: db}
		dead, b := newStore(t, cut, withLeases), newStore(t, db, nil)
		defer closing(t, b)
		defer gate.Release()
		o := op(t, "e", limiter.PerDay("l", 100), limiter.Spend{Take: tokens(1)})
		taken := warm(t, dead, t0(), o)
		cut.set(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			return nil, errTest
		})
		all := op(t, "e", limiter.PerDay("l", 100), limiter.Spend{Take: tokens(100 - taken)})
		mustTake(t, b, t0(), false, all)
		look := func() map[string]string {
			t.Helper()
			mustTake(t, b, t0(), true, op(t, "e", limiter.PerDay("l", 100), limiter.Spend{Look: true}))
			return leasedOf(t, db)
		}
		time.Sleep(5 * time.Second)
		if got := look(); len(got) != 2 {
			t.Errorf("after 5 s there is %v on lease, want it as it was", got)
		}
		time.Sleep(time.Second)
		if got := look(); len(got) != 0 {
			t.Errorf("after 6 s there is %v on lease, want nothing", got)
		}
		if got := b.Stats().Reaped; got != 1 {
			t.Errorf("%d leases were freed, want 1", got)
		}
		mustTake(t, b, after(86400), true, op(t, "e", limiter.PerDay("l", 100), limiter.Spend{Take: tokens(100)}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = dead.Close(ctx)
	})
}

// A lowered limit takes tokens back that were leased under the old one: within 5 s also
// where no request knows of it, and at once where one does.
func TestALoweredLimitRecallsLeases(t *testing.T) {
	for _, told := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := newTable(t)
			a, b := newStore(t, db, withLeases), newStore(t, db, nil)
			defer closing(t, a, b)
			old := op(t, "e", limiter.Custom("l", 1000, 1, time.Hour), limiter.Spend{Take: tokens(1)})
			low := op(t, "e", limiter.Custom("l", 10, 1, time.Hour), limiter.Spend{Take: tokens(1)})
			low.Generation = 2
			warm(t, a, t0(), old)
			mustTake(t, b, t0(), true, low)
			admitted, began := 0, time.Now()
			for time.Since(began) < 5*time.Second {
				o := old
				if told {
					o = low
				}
				ok, err := a.Take(t.Context(), t0(), []limiter.Op{o})
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					admitted++
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Logf("told %t: %d admitted, %+v", told, admitted, a.Stats())
			if most := 9; told && admitted > most {
				t.Errorf("%d were admitted under a limit of 10 that is known", admitted)
			}
			mustTake(t, a, t0(), false, low)
			mustTake(t, a, t0(), false, old)
		})
	}
}
