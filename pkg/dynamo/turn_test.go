package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// distant is a client of whom the table is some way off.
type distant struct {
	dynamo.Client
	way func() time.Duration
}

func (c distant) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	time.Sleep(c.way())
	defer func() { time.Sleep(c.way()) }()
	return c.Client.UpdateItem(ctx, in, opts...)
}

// fromAfar has callers of a store, whose clock is ahead, ask again and again for a
// token of a bucket that has plenty.
type fromAfar struct {
	store *dynamo.Store
	ahead time.Duration

	mu            sync.Mutex
	decided, late int // late: after more than a decision may take by default
}

func (f *fromAfar) ask(t *testing.T, o limiter.Op, span time.Duration) {
	for began := time.Now(); time.Since(began) < span; time.Sleep(time.Millisecond) {
		start := time.Now()
		own := o
		own.Spends = []limiter.Spend{o.Spends[0]}
		if _, err := f.store.Take(t.Context(), t0().Add(time.Since(began)+f.ahead), []limiter.Op{own}); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		f.decided++
		if time.Since(start) > 15*time.Millisecond {
			f.late++
		}
		f.mu.Unlock()
	}
}

// Replicas that ask a bucket that has plenty all get their turn, also the one that is
// the farthest and whose clock is ahead. Each refill moves the time of the last one, so
// that of the writes which are planned from one state only the first is applied: without
// turns every decision of the third replica was late, and 13% of the writes refused. With
// them it is below 2% and 1%, by the order in which goroutines run.
func TestReplicasTakeTurns(t *testing.T) {
	for _, replicas := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(replicas, " replicas"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				o := op(t, "e", limiter.PerSecond("l", 1_000_000), limiter.Spend{Take: tokens(1)})
				all := make([]*fromAfar, replicas)
				for i := range all {
					r := rand.New(rand.NewPCG(1, uint64(i)))
					way := time.Duration(2+i%3) * time.Millisecond / 2
					store := newStore(t, distant{db, func() time.Duration { return way + time.Duration(r.Int64N(int64(way/2))) }}, nil)
					balanceOf(t, store, o)
					defer closing(t, store)
					all[i] = &fromAfar{store: store, ahead: time.Duration(i) * 20 * time.Millisecond}
				}
				var wg sync.WaitGroup
				for i := range replicas * callers {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Microsecond)
						all[i%replicas].ask(t, o, 4*time.Second)
					})
				}
				wg.Wait()
				var writes, refused int64
				for i, f := range all {
					stats := f.store.Stats()
					writes, refused = writes+stats.Writes, refused+stats.Refused
					t.Logf("replica %d: %d decisions, %d of them late", i, f.decided, f.late)
					if f.late*10 > f.decided {
						t.Errorf("replica %d: %d of %d decisions were late, want 10%% at most", i, f.late, f.decided)
					}
				}
				t.Logf("%d writes, %d of them refused", writes, refused)
				if refused*100 > writes*6 {
					t.Errorf("%d of %d writes were refused, want 6%% at most", refused, writes)
				}
			})
		})
	}
}
