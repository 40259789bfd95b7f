package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// version is a set of limits and its generation.
type version struct {
	limits     *limiter.Limits
	generation uint64
}

// checkChangesWhileTaking: 64 callers take while the limit is lowered, raised, removed and added
// again, some of them with an older version. No interval has more than its greatest limit allows.
// The intervals after the last change have no more than the last limit allows.
func checkChangesWhileTaking(t T, s limiter.Store) {
	c := newClient(t, s)
	small, great := limiter.PerSecond("l", 100), limiter.PerSecond("l", 300)
	other := limiter.PerDay("other", 1)
	ch := changing{store: s, op: on("user", c.limits(great), limiter.Spend{Limit: "l"})}
	ch.sets = []*limiter.Limits{ch.op.Limits, c.limits(other), c.limits(small, other), c.limits(limiter.Unlimited("l")), c.limits(small)}
	ch.versions = []version{{ch.op.Limits, 1}}
	ch.run(t, 5)
	if err := rateOf(great).check(ch.history.decided, 0); err != nil {
		t.Errorf("while limits change: %v", err)
	}

	last := version{c.limits(small), 1 << 40}
	c.take(ch.clock.ms.Load(), under(spending(ch.op, limiter.Spend{}), last.generation, last.limits))
	ch.sets, ch.versions, ch.history = nil, append(ch.versions, last), history{}
	ch.run(t, 6)
	if err := rateOf(small).check(ch.history.decided, 0); err != nil {
		t.Errorf("after the last change: %v", err)
	}
}

// changing is a bucket whose limits change while callers take from it.
type changing struct {
	store   limiter.Store
	op      limiter.Op
	sets    []*limiter.Limits // put in force one after the other; empty = no more changes
	clock   clock
	history history

	mu       sync.Mutex
	calls    int
	versions []version // the last one is in force
}

func (ch *changing) run(t T, seed uint64) {
	ctx, cancel := within(t)
	defer cancel()
	var g errgroup.Group
	for caller := range callers {
		g.Go(func() error { return ch.call(ctx, seeded(seed, caller)) })
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed: %v", err)
	}
	if len(ch.history.decided) == 0 {
		t.Errorf("nothing was admitted: the case shows nothing")
	}
}

// version returns the limits of a caller: the version in force, or an older one if it was
// suspended. Every 30th call puts a new version in force.
func (ch *changing) version(r *rand.Rand) version {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.calls++
	if ch.calls%30 == 0 && len(ch.sets) > 0 {
		n := len(ch.versions)
		ch.versions = append(ch.versions, version{ch.sets[n%len(ch.sets)], uint64(n + 1)}) // #nosec G115 -- above 0
	}
	last := len(ch.versions) - 1
	if r.IntN(3) == 0 {
		return ch.versions[max(0, last-r.IntN(4))]
	}
	return ch.versions[last]
}

// errHangs is the error of a decision that did not come in the time of within.
var errHangs = errors.New("a call was decided late, long after any sound store would have decided it")

// call is one caller.
func (ch *changing) call(ctx context.Context, r *rand.Rand) error {
	for range 60 {
		v := ch.version(r)
		sp := limiter.Spend{Limit: "l", Take: 1 + r.Int64N(tokens(12))}
		if v.limits.Find("l") < 0 {
			sp = limiter.Spend{Limit: "other"}
		}
		ops := []limiter.Op{under(spending(ch.op, sp), v.generation, v.limits)}
		admitted, err := ch.store.Take(ctx, at(ch.clock.unsteady(r, 2, 50)), ops)
		if err != nil {
			return err
		}
		if ops[0].Late {
			return errHangs
		}
		if got := ops[0].Spends[0]; admitted && got.Held && got.Limit == "l" {
			ms := got.Bucket.Refilled - epoch
			ch.history.add(taking{from: ms, to: ms, taken: got.Take}, taking{})
		}
	}
	return nil
}
