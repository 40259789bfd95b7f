package comparison_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/internal/windows"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/comparison"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	tableName = "buckets"
	// seed is of the arrivals and of the latencies. What the stores draw themselves, and
	// the order of goroutines that are ready at the same time, are not drawn from it.
	seed = 1
)

// The modes that are compared.
const (
	modeOneWrite    = "one write each"
	modeGroupCommit = "group commit"
	modeLeases      = "token leases"
)

func modes() []string { return []string{modeOneWrite, modeGroupCommit, modeLeases} }

// decision is what became of a call, in time since the run began.
type decision struct {
	from, to time.Duration
	admitted bool
	err      error
}

// run is one mode under the load of one scenario.
type run struct {
	scenario
	mode     string
	networks []*network
	takes    []func(context.Context) (bool, error) // of each replica
	close    func()
	began    time.Time

	mu        sync.Mutex
	decisions []decision
}

// measure runs a mode under a scenario, in time that does not pass.
func measure(t *testing.T, sc scenario, mode string) (result comparison.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, sc, mode)
		before := r.counts()
		r.load(t.Context())
		result = r.result(t, before)
		r.close()
	})
	return result
}

func newRun(t *testing.T, sc scenario, mode string) *run {
	t.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(t.Context(), dynamo.TableInput(tableName)); err != nil {
		t.Fatal(err)
	}
	r := &run{scenario: sc, mode: mode, close: func() {}}
	for i := range sc.replicas {
		r.networks = append(r.networks, &network{Client: db, r: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	if mode == modeOneWrite {
		r.writeOnce(t)
	} else {
		r.useStores(t)
	}
	return r
}

// writeOnce has every replica write once for each decision.
func (r *run) writeOnce(t *testing.T) {
	t.Helper()
	for i, n := range r.networks {
		o := &oneWrite{client: n, params: r.limit.Params()}
		if i == 0 {
			if err := o.create(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.takes = append(r.takes, o.take)
	}
}

// useStores has every replica use a store of its own. The bucket is not split: what one
// item takes is compared.
func (r *run) useStores(t *testing.T) {
	t.Helper()
	limits, err := limiter.NewLimits(r.limit)
	if err != nil {
		t.Fatal(err)
	}
	stores := make([]*dynamo.Store, 0, len(r.networks))
	for _, n := range r.networks {
		s, err := dynamo.New(dynamo.Config{Client: n, Table: tableName, ShardUnits: 1 << 40, Leases: r.mode == modeLeases})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
		take := func(ctx context.Context, amount int64) (bool, error) {
			return s.Take(ctx, time.Now(), []limiter.Op{{
				Bucket: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "e", Resource: "r"}, Limits: limits, Generation: 1,
				Spends: []limiter.Spend{{Limit: r.limit.Name, Take: amount}},
			}})
		}
		if _, err := take(t.Context(), 0); err != nil { // it knows the namespace and the bucket
			t.Fatal(err)
		}
		r.takes = append(r.takes, func(ctx context.Context) (bool, error) { return take(ctx, limiter.Milli) })
	}
	r.close = func() {
		for _, s := range stores {
			if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	}
}

// load makes the calls of the scenario, and waits for all of them.
func (r *run) load(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(seed, 1<<32))
	var calls sync.WaitGroup
	r.began = time.Now()
	next := r.began
	for range r.times {
		for _, p := range r.phases {
			end := next.Add(p.lasts)
			for p.rate > 0 {
				at := next.Add(time.Duration(rnd.ExpFloat64() * float64(time.Second) / p.rate))
				if !at.Before(end) {
					break
				}
				next = at
				time.Sleep(time.Until(next))
				take := r.takes[rnd.IntN(len(r.takes))]
				calls.Go(func() { r.call(ctx, take) })
			}
			next = end
			time.Sleep(time.Until(next))
		}
	}
	calls.Wait()
}

func (r *run) call(ctx context.Context, take func(context.Context) (bool, error)) {
	from := time.Since(r.began)
	ok, err := take(ctx)
	d := decision{from, time.Since(r.began), ok, err}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = append(r.decisions, d)
}

// counts returns how many writes were sent, and how many refused.
func (r *run) counts() [2]int64 {
	var n [2]int64
	for _, c := range r.networks {
		n[0] += c.writes.Load()
		n[1] += c.refused.Load()
	}
	return n
}

// result is what the run has come to.
func (r *run) result(t *testing.T, before [2]int64) comparison.Result {
	t.Helper()
	after := r.counts()
	n := len(r.decisions)
	admitted, late := int64(0), 0
	took := make([]time.Duration, 0, n)
	var all []windows.Taking
	for _, d := range r.decisions {
		took = append(took, d.to-d.from)
		if d.err != nil || d.to-d.from > comparison.Patience {
			late++
		}
		if d.err != nil && r.mode != modeOneWrite {
			t.Errorf("%s, %s: %v", r.name, r.mode, d.err)
		}
		if d.admitted {
			admitted++
			all = append(all, windows.Taking{From: d.from.Microseconds(), To: (d.to + time.Microsecond - 1).Microseconds(), Amount: limiter.Milli})
		}
	}
	slices.Sort(took)
	span := r.decisions[n-1].to
	res := comparison.Result{
		Scenario: r.name, Mode: r.mode, Decisions: int64(n),
		Writes: after[0] - before[0], Refused: after[1] - before[1], Span: span,
		Over: r.over(t, all), Share: float64(admitted) / float64(max(r.ideal(), 1)),
		P50: took[n/2], P99: took[n*99/100], P999: took[n*999/1000], Late: float64(late) / float64(n),
	}
	return res
}

// over returns how many millitokens a window has beyond the bound, whenever within their
// calls the decisions were made. Stores reckon in whole milliseconds.
func (r *run) over(t *testing.T, all []windows.Taking) int64 {
	t.Helper()
	found, err := windows.Check(r.limit.Params(), all, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return max(found.Tightest.Excess(), 0)
}

// ideal returns how many of the calls a token bucket admits that is asked without delay.
func (r *run) ideal() int64 {
	calls := slices.Clone(r.decisions)
	slices.SortFunc(calls, func(a, b decision) int { return int(a.from - b.from) })
	p := r.limit.Params()
	unit := p.Period * int64(time.Millisecond) // of a millitoken, so that a nanosecond refills p.Amount
	level, at, n := p.Capacity*unit, time.Duration(0), int64(0)
	for _, c := range calls {
		level = min(level+int64(c.from-at)*p.Amount, p.Capacity*unit)
		if at = c.from; level >= limiter.Milli*unit {
			level -= limiter.Milli * unit
			n++
		}
	}
	return n
}
