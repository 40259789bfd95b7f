package fleetsim_test

import (
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// reservation is the take of a call before its work, which is settled once.
type reservation struct {
	taken

	id      string
	expires time.Time // by any machine's clock it is later
	owners  int       // settlements that were begun
	open    int       // of them, those without an answer
	unknown bool      // one of them has an unknown outcome
	won     int64     // settlements whose answer says that they book
}

// reserve notes that a call is to be settled: by one process, or by two as where a message about
// it came twice.
func (f *fleet) reserve(t taken) {
	r := &reservation{taken: t, id: fmt.Sprint("r", f.reserved), expires: clocktest.At(simStart*int64(time.Millisecond)+f.now, 0).Add(24 * time.Hour)}
	f.reserved++
	f.after(f.r.Int64N(2*second), func() {
		for range 1 + f.r.IntN(2) {
			f.settle(f.some().process, r)
		}
	})
}

// settle has a process settle a reservation: it sets its mark, and where that has won it books the
// difference. It may repeat the mark, where it does not know whether it is set.
func (f *fleet) settle(p *process, r *reservation) {
	if f.over || p.pausedUntil > f.now {
		return
	}
	r.owners++
	r.open++
	m := limiter.Mark{Namespace: simNamespace, ID: r.id, Owner: fmt.Sprint("o", r.owners), Expires: r.expires}
	more := f.r.Int64N(2*r.amount+1) - r.amount
	p.settles = append(p.settles, r)
	p.Start(func() {
		s := catalog.NewSettlements(catalog.SettlementsConfig{
			Items: p.engine.Items(), Table: simTable, Loop: p, Now: p.machine, Attempt: 100 * time.Millisecond, NamespaceID: namespaceID,
		})
		ctx := p.newContext(p.stopped, f.now+second)
		won, err := s.Settle(ctx, p.machine(), m)
		r.open--
		if err != nil {
			r.unknown = true // it books nothing, and its mark may stand
			return
		}
		if !won {
			f.settled(r)
			return
		}
		r.won++
		if r.won > 1 {
			f.failf("reservation %s: %d settlements book", r.id, r.won)
		}
		f.seen["settled"]++
		limits, generation := p.knows(r.bucket)
		op := limiter.Op{Bucket: r.bucket.key, Limits: limits, Generation: generation, Shard: r.shard}
		for _, limit := range r.limits {
			op.Spends = append(op.Spends, limiter.Spend{Limit: limit, Charge: max(more, 0), Refund: max(-more, 0)})
		}
		_, _ = f.take(p, []limiter.Op{op})
	})
}

// settled requires that one of the settlements of a reservation has won, when all have ended
// with a known outcome.
func (f *fleet) settled(r *reservation) {
	if r.open == 0 && r.won == 0 && !r.unknown {
		f.failf("reservation %s: none of %d settlements books", r.id, r.owners)
	}
}
