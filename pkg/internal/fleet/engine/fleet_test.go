package engine_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// deadline is how long callers of a fleet wait.
const deadline = 15 * time.Millisecond

// slow answers each call after a time that is drawn: lognormal, half of them within 3.5 ms
// and 99 of 100 within 10 ms.
func slow() dynamofake.Plan {
	r := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- repeatable
	return func(dynamofake.Call) dynamofake.Fault {
		return dynamofake.Fault{Latency: time.Duration(3.5 * math.Exp(0.4513*r.NormFloat64()) * float64(time.Millisecond))}
	}
}

// fleet is some replicas that are asked for more than a limit allows.
type fleet struct {
	replicas int
	limit    limiter.Limit
	rate     int // of all callers together, a second
	lasts    time.Duration
	policy   limiter.LeasePolicy
}

// outcome is the result of a fleet.
type outcome struct {
	admitted, denied, late, failed int
	over                           int // most tokens admitted above the bound, in any interval
	waits                          []time.Duration
	stats                          []engine.Stats
}

func (f fleet) run(t *testing.T) outcome {
	t.Helper()
	db := newTable(t)
	db.SetPlan(slow())
	engines := make([]*engine.Engine, f.replicas)
	for i := range engines {
		engines[i] = newEngine(t, db, func(cfg *engine.Config) { cfg.Attempt, cfg.Budget, cfg.Leases, cfg.ShardUnits = 0, 0, true, 1_000_000 })
	}
	var (
		mu  sync.Mutex
		out outcome
		at  []time.Time
		g   sync.WaitGroup
	)
	call := func(e *engine.Engine) {
		o := op(t, "e", f.limit, limiter.Spend{Take: tokens(1)})
		o.Lease = f.policy
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		began := time.Now()
		ops := []limiter.Op{o}
		admitted, err := e.Take(ctx, began, ops)
		mu.Lock()
		defer mu.Unlock()
		out.waits = append(out.waits, time.Since(began))
		switch {
		case err != nil:
			out.failed++
		case admitted:
			out.admitted++
			at = append(at, time.Now())
		default:
			out.denied++
		}
		if ops[0].Late {
			out.late++
		}
	}
	gap := time.Second * time.Duration(f.replicas) / time.Duration(f.rate)
	for i, e := range engines {
		g.Go(func() {
			time.Sleep(gap * time.Duration(i) / time.Duration(f.replicas))
			for begin := time.Now(); time.Since(begin) < f.lasts; time.Sleep(gap) {
				g.Go(func() { call(e) })
			}
		})
	}
	g.Wait()
	out.over = over(f.limit, at)
	for _, e := range engines {
		out.stats = append(out.stats, e.Stats())
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return out
}

// over returns the most that was admitted above the bound in any interval.
func over(l limiter.Limit, at []time.Time) int {
	slices.SortFunc(at, time.Time.Compare)
	full, worst := 0.0, 0.0 // the point of the refill at which the bucket is full
	rate := float64(l.RefillAmount) / l.RefillPeriod.Seconds()
	for i, t := range at {
		refilled := t.Sub(at[0]).Seconds() * rate
		if full = max(full, refilled) + 1; i == 0 {
			full = 1
		}
		worst = max(worst, full-refilled-float64(l.Capacity))
	}
	return int(math.Ceil(worst - 1e-6))
}

func (o outcome) writes() (n, refused int64) {
	for _, s := range o.stats {
		n, refused = n+s.Writes, refused+s.Refused
	}
	return n, refused
}

func TestThreeReplicasAtTwiceTheLimit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		policy limiter.LeasePolicy
		rate   int64
	}{
		{"none, 200 a second", limiter.LeasePolicy{None: true}, 200},
		{"none, 1000 a second", limiter.LeasePolicy{None: true}, 1000},
		{"auto, 1000 a second", limiter.LeasePolicy{}, 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleet{replicas: 3, limit: limiter.PerSecond("l", tc.rate), rate: int(2 * tc.rate), lasts: 3 * time.Second, policy: tc.policy}
				o := f.run(t)
				slices.Sort(o.waits)
				ideal := tc.rate + tc.rate*int64(f.lasts/time.Second)
				writes, refused := o.writes()
				calls := len(o.waits)
				t.Logf("%d calls: %d admitted of %d, %d denied, %d late (%.2f %%), %d failed, %d over; %d writes, %d refused; p50 %v, p99 %v",
					calls, o.admitted, ideal, o.denied, o.late, 100*float64(o.late)/float64(calls), o.failed, o.over, writes, refused, o.waits[calls/2], o.waits[calls*99/100])
				t.Logf("%+v", o.stats[0])
				if o.failed > 0 || o.over > 0 {
					t.Errorf("%d calls failed, %d tokens over", o.failed, o.over)
				}
			})
		})
	}
}
