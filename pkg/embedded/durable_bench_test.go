//go:build bench && !race

package embedded_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// durable is a store with a file, whose buckets have been in use for a while.
type durable struct {
	store   *embedded.Store
	limiter *limiter.Limiter

	touched   time.Duration // how long the first decisions for all keys took
	touchedBy uint64        // and how many commits
}

// usedBefore is the most tokens that the first decision takes for a key: the part of its block
// before the next is requested. So there are as many blocks to write as in a store in long use.
const usedBefore = 2929

// benchLimit admits all that a benchmark takes. A block of it is 1/256 of the capacity.
func benchLimit() limiter.Limit { return limiter.PerSecond("rpd", 1_000_000) }

// newDurable opens a store in a new directory, and takes from a bucket for each key. So many
// callers do so at once as wait for the file together.
func newDurable(tb testing.TB, keys []string, callers int) *durable {
	tb.Helper()
	store := openDurable(tb)
	d := &durable{store: store, limiter: limiterOf(tb, store, benchLimit())}
	begin := time.Now()
	touchEach(tb, d.limiter, keys, callers)
	d.touched, d.touchedBy = time.Since(begin), store.Stats().Commits
	return d
}

// touchEach takes from a bucket for each key once.
func touchEach(tb testing.TB, l *limiter.Limiter, keys []string, callers int) {
	tb.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 0))
			req := &limiter.Request{Takes: []limiter.Take{{Resource: "gpt-4", Consume: []limiter.Consumption{{Limit: "rpd"}}}}}
			var dec limiter.Decision
			for i := next.Add(1) - 1; i < int64(len(keys)); i = next.Add(1) - 1 {
				req.Takes[0].Entity, req.Takes[0].Consume[0].Amount = keys[i], (1+r.Int64N(usedBefore))*limiter.Milli
				if err := l.Decide(context.Background(), time.Now(), req, &dec); err != nil || !dec.Admitted {
					tb.Error(err, dec.Admitted)
					return
				}
			}
		})
	}
	wg.Wait()
}

// decideBy makes n decisions for random keys, divided among callers.
func decideBy(tb testing.TB, l *limiter.Limiter, keys []string, callers, n int) {
	tb.Helper()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), uint64(n)))
			req := &limiter.Request{Takes: []limiter.Take{{Resource: "gpt-4", Consume: []limiter.Consumption{{Limit: "rpd", Amount: limiter.Milli}}}}}
			var dec limiter.Decision
			for range n / callers {
				req.Takes[0].Entity = keys[r.IntN(len(keys))]
				if err := l.Decide(context.Background(), time.Now(), req, &dec); err != nil || !dec.Admitted {
					tb.Error(err, dec.Admitted)
					return
				}
			}
		})
	}
	wg.Wait()
}
