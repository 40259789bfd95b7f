package comparison_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/comparison"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// seed is of the arrivals and of the latencies. Random numbers of the stores, and the
// order of goroutines that are ready at the same time, do not come from it.
const seed = 1

// call is a call and its end, in time since the run began.
type call struct {
	answer

	from, to time.Duration
	key      int
	amount   int64 // millitokens
	err      error
}

// run is one mode under one load of one scenario.
type run struct {
	*scenario
	*fleet

	load  load
	mode  string
	began time.Time

	to func(*rand.Rand) int // the replica of a call, where the scenario does not say it; nil = any

	mu    sync.Mutex
	calls []call
}

// measure runs a mode under a load of a scenario, in time that does not pass.
func measure(t *testing.T, sc *scenario, mode string, long bool) (result comparison.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &run{scenario: sc, fleet: newFleet(t, sc, mode), load: sc.short, mode: mode}
		if long {
			r.load = sc.long
		}
		r.bear(t.Context())
		result = r.result(t)
		r.close(t)
	})
	return result
}

// lasts returns how long calls come.
func (l load) lasts() time.Duration {
	var all time.Duration
	for _, p := range l.phases {
		all += p.lasts
	}
	return all * time.Duration(l.times)
}

// bear makes the calls of the load, and waits for all of them.
func (r *run) bear(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(seed, 1<<32))
	var calls sync.WaitGroup
	r.began = time.Now()
	next := r.began
	for range r.load.times {
		for _, p := range r.load.phases {
			end := next.Add(p.lasts)
			for p.rate > 0 {
				at := next.Add(time.Duration(rnd.ExpFloat64() * float64(time.Second) / p.rate))
				if !at.Before(end) {
					break
				}
				next = at
				time.Sleep(time.Until(next))
				ask := r.takes[r.replica(rnd, next.Sub(r.began))]
				c := call{key: r.key(rnd), amount: r.amount(rnd)}
				calls.Go(func() { r.ask(ctx, ask, c) })
			}
			next = end
			time.Sleep(time.Until(next))
		}
	}
	calls.Wait()
}

// replica returns the replica that a call at a time comes to.
func (r *run) replica(rnd *rand.Rand, at time.Duration) int {
	switch {
	case r.to != nil:
		return r.to(rnd)
	case r.moves > 0:
		return int(at/r.moves) % r.replicas
	case len(r.spread) > 0:
		return draw(rnd, r.spread)
	default:
		return rnd.IntN(r.replicas)
	}
}

func (r *run) key(rnd *rand.Rand) int {
	if len(r.keys) == 0 {
		return 0
	}
	return draw(rnd, r.keys)
}

func (r *run) amount(rnd *rand.Rand) int64 {
	if r.most == 0 {
		return limiter.Milli
	}
	return (1 + rnd.Int64N(r.most)) * limiter.Milli
}

func (r *run) ask(ctx context.Context, ask take, c call) {
	c.from = time.Since(r.began)
	c.answer, c.err = ask(ctx, c.key, c.amount)
	c.to = time.Since(r.began)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// result returns the result of the run.
func (r *run) result(t *testing.T) comparison.Result {
	t.Helper()
	res := comparison.Result{Scenario: r.name, Mode: r.mode, Load: r.load.lasts(), Decisions: int64(len(r.calls))}
	res.Writes, res.Refused, res.Hottest = r.writes.sum()
	took := make([]time.Duration, 0, len(r.calls))
	var admitted int64
	for i := range r.calls {
		c := &r.calls[i]
		if c.err != nil {
			t.Errorf("%s, %s: %v", r.name, r.mode, c.err)
		}
		took = append(took, c.to-c.from)
		res.Span = max(res.Span, c.to)
		if c.policy {
			res.Policy++
		}
		if c.late {
			res.Late++
		}
		if c.admitted {
			admitted += c.amount
			if c.late {
				res.LateTokens += c.amount
			}
		}
	}
	slices.Sort(took)
	res.P50, res.P99 = took[len(took)/2], took[len(took)*99/100]
	buckets := r.buckets()
	res.Over = over(t, buckets, r.calls)
	res.Share = float64(admitted) / float64(max(ideal(buckets, r.calls), 1))
	res.Needless = needless(buckets, r.calls)
	return res
}
