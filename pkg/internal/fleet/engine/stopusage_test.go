package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// stall is a time in which the table answers nothing, and the stop of replicas beside it.
type stall struct {
	kind  dynamofake.Kind
	lasts time.Duration
	stops time.Duration // of the first replica, after the stall began
	gives time.Duration // how long each may take for its end
}

// stopped is the result of replicas that were stopped.
type stopped struct {
	used, counted  int64 // consumption
	perhaps        int64 // consumption of calls without a decision
	lost, doubtful int64 // consumption that is not counted, or may not be, as the replicas say
}

// Consumption from leases is counted once the table answers again, or else as lost. A stop ends by its
// time.
func TestUsageOfReplicasThatStopInAStall(t *testing.T) {
	const ms = time.Millisecond
	stalls := 0
	for _, kind := range []dynamofake.Kind{dynamofake.HoldRequest, dynamofake.LoseReply, dynamofake.ServerError} {
		for _, s := range []stall{
			{kind, 300 * ms, 100 * ms, 5000 * ms},
			{kind, 3000 * ms, 1000 * ms, 5000 * ms},
			{kind, 8000 * ms, 500 * ms, 5000 * ms},
			{kind, 8000 * ms, 0, 20000 * ms},
			{kind, 4000 * ms, 5000 * ms, 5000 * ms}, // others free the leases
		} {
			stalls++
			if stalls%stopStep != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%v/lasts %v, stops after %v, gives %v", s.kind, s.lasts, s.stops, s.gives), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.check(t, s.run(t)) })
			})
		}
	}
}

func (s stall) check(t *testing.T, got stopped) {
	t.Helper()
	missing := got.used - got.counted
	t.Logf("%+v, missing %d", got, missing)
	switch {
	case missing > got.lost+got.doubtful:
		t.Errorf("%d millitokens are not counted, %d more than the replicas say", missing, missing-got.lost-got.doubtful)
	case missing < -got.perhaps:
		t.Errorf("%d millitokens are counted, and %d were used, or %d more", got.counted, got.used, got.perhaps)
	case s.kind == dynamofake.ServerError && missing+got.perhaps < got.lost+got.doubtful:
		t.Errorf("the replicas say that %d and %d millitokens are not counted; %d are not", got.lost, got.doubtful, missing)
	case s.lasts < time.Second && got.doubtful > 0, 2*s.lasts < s.gives && got.lost > 0:
		t.Errorf("%d millitokens are lost, and %d may be, though the table answers in time", got.lost, got.doubtful)
	}
}

// run has three replicas serve from leases, stalls the table, and stops one after the other.
func (s stall) run(t *testing.T) (out stopped) {
	t.Helper()
	db := newTable(t)
	db.SetPlan(slow())
	engines := []*engine.Engine{newEngine(t, db, leased), newEngine(t, db, leased), newEngine(t, db, leased)}
	u := consumers{T: t, stopped: &out}
	ctx, stop := context.WithCancel(t.Context())
	var calls, stops sync.WaitGroup
	for i, e := range engines {
		calls.Go(func() { u.load(ctx, e, uint64(i)) }) // #nosec G115 -- few
	}
	time.Sleep(3 * time.Second)
	gate := dynamofake.NewGate()
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: s.kind, Gate: gate} })
	stops.Go(func() {
		time.Sleep(s.lasts)
		db.SetPlan(slow())
		gate.Release()
	})
	time.Sleep(s.stops)
	stop()
	calls.Wait()
	for i, e := range engines {
		stops.Go(func() {
			time.Sleep(time.Duration(i) * 200 * time.Millisecond)
			s.stop(t, e)
		})
	}
	stops.Wait()
	u.count(db, engines)
	return out
}

func (s stall) stop(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), s.gives)
	defer cancel()
	began, lost := time.Now(), e.Stats().UsageLostStop
	err := e.Close(ctx)
	if took := time.Since(began); took > s.gives+time.Second/10 {
		t.Errorf("Close takes %v of %v", took, s.gives)
	}
	if e.Stats().UsageLostStop > lost && err == nil {
		t.Error("Close reports nothing of the usage that is lost")
	}
}

// consumers call replicas for three buckets, and sum up their consumption.
type consumers struct {
	*testing.T

	mu sync.Mutex
	*stopped
}

func (u *consumers) op(which int, n int64) limiter.Op {
	u.Helper()
	return op(u.T, fmt.Sprint("e", which), limiter.PerSecond("l", 20_000), limiter.Spend{Take: n})
}

func (u *consumers) load(ctx context.Context, e *engine.Engine, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 9)) // #nosec G404 -- repeatable
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		u.call(ctx, e, u.op(random.IntN(3), tokens(1+random.Int64N(3))))
	}
}

func (u *consumers) call(ctx context.Context, e *engine.Engine, o limiter.Op) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	admitted, err := e.Take(ctx, time.Now(), []limiter.Op{o})
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err != nil:
		u.perhaps += o.Spends[0].Take
	case admitted:
		u.used += o.Spends[0].Take
	}
}

func (u *consumers) count(db *dynamofake.DB, engines []*engine.Engine) {
	u.Helper()
	for _, e := range engines {
		s := e.Stats()
		u.lost += s.UsageLostStop + s.UsageLostOutage + s.UsageLostDeleted
		u.doubtful += s.UsageLostReply
	}
	for i := range 3 {
		u.counted += consumed(u.T, db, u.op(i, 0))
	}
}
