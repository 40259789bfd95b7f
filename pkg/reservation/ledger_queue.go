package reservation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// together is the number of queued charges that are tried at the same time.
	together = 64
	// pause is the time between tries after the store did not answer.
	pause = time.Second
)

// charge applies charges, refunds or a settlement. It may be called again only after an error that
// wraps limiter.ErrUnavailable and not limiter.ErrUncertain.
type charge func(ctx context.Context) error

// queue is the charges that wait for the store, and the goroutine that tries them.
type queue struct {
	most   int
	budget time.Duration
	logger *limiter.SampledLog
	now    func() time.Time

	booked, lost, uncertain atomic.Int64

	late  atomic.Int64    // first tries that continue after their callers were answered
	tries sync.WaitGroup  // first tries
	ctx   context.Context //nolint:containedctx // of all tries: done when close ends them

	mu      sync.Mutex
	pending []charge
	trying  int  // charges from the queue that are being tried
	first   int  // charges that are tried for the first time
	closed  bool // no more charges, except those counted in first
	over    bool // no more tries

	wake  chan struct{} // has an element when there is a charge to try, or the queue is closed
	stop  context.CancelFunc
	ended chan struct{}
}

func newQueue(most int, budget time.Duration, now func() time.Time, log *slog.Logger) *queue {
	ctx, stop := context.WithCancel(context.Background())
	q := &queue{most: most, budget: budget, now: now, logger: limiter.NewSampledLog(log), ctx: ctx, wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	go q.run(ctx)
	return q
}

func (q *queue) stats() LedgerStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return LedgerStats{Kept: len(q.pending) + q.trying + int(q.late.Load()), Booked: q.booked.Load(), Lost: q.lost.Load(), Uncertain: q.uncertain.Load()}
}

// add adds a charge, and reports false when there is no room or no time for it.
func (q *queue) add(b charge) bool {
	q.mu.Lock()
	ok := !q.over && (!q.closed || q.first > 0) && len(q.pending)+q.trying+int(q.late.Load()) < q.most // rule: nothing is queued after the end
	if ok {
		q.pending = append(q.pending, b)
	}
	full := !q.closed
	q.mu.Unlock()
	if !ok {
		q.lost.Add(1)
		if full {
			q.log("full", "a charge is lost: the queue of pending charges is full", slog.Int("most", q.most))
		}
		return false
	}
	q.signal()
	return true
}

// begin counts a charge that is tried for the first time, until end.
func (q *queue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first++
}

func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first--
	if q.closed {
		q.signal()
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // it is awake already
	}
}

// run tries the queue until ctx is done, or the queue is closed and empty.
func (q *queue) run(ctx context.Context) {
	defer close(q.ended)
	rest := false // the store did not answer
	for {
		if rest {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
		batch, more := q.next()
		if len(batch) > 0 {
			rest = !q.try(ctx, batch)
			continue
		}
		if !more {
			return
		}
		select {
		case <-q.wake:
			rest = false
		case <-ctx.Done():
			return
		}
	}
}

// next removes charges from the queue, and reports whether there can be more.
func (q *queue) next() (batch []charge, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(together, len(q.pending))
	batch = append(batch, q.pending[:n]...)
	clear(q.pending[:n]) // the array may still be referenced
	q.pending = q.pending[n:]
	q.trying = n
	return batch, !q.closed || q.first > 0
}

// try tries charges, and adds those without an answer to the queue again. It reports whether all
// were answered.
func (q *queue) try(ctx context.Context, batch []charge) bool {
	ctx, stop := context.WithTimeout(ctx, q.budget)
	defer stop()
	again := make([]bool, len(batch))
	var group sync.WaitGroup
	for i, b := range batch {
		group.Go(func() { again[i] = q.once(ctx, b) })
	}
	group.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trying = 0
	answered := true
	for i, b := range batch {
		if again[i] {
			q.pending, answered = append(q.pending, b), false
		}
	}
	return answered
}

// once tries a charge, and reports whether it is to be tried again.
func (q *queue) once(ctx context.Context, b charge) (again bool) {
	switch err := b(ctx); {
	case err == nil:
		q.booked.Add(1)
	case errors.Is(err, limiter.ErrUncertain):
		q.uncertain.Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		return true
	default:
		q.refused(err)
	}
	return false
}

// refused counts a charge that the store refuses for good.
func (q *queue) refused(err error) {
	q.lost.Add(1)
	q.log("refused", "a charge is lost: the store refuses it", slog.Any("error", err))
}

// log logs events that calls can cause: at most one line a second of each kind.
func (q *queue) log(kind, message string, attr slog.Attr) {
	q.logger.Write(q.ctx, q.now(), slog.LevelError, kind, message, attr)
}

// close ends the queue, see Ledger.Close.
func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	select {
	case <-q.ended:
	case <-ctx.Done():
	}
	q.mu.Lock()
	open := q.first
	q.over = true
	q.mu.Unlock()
	q.stop()
	<-q.ended
	q.tries.Wait() // their context is done
	q.mu.Lock()
	lost := len(q.pending)
	q.pending = nil
	q.mu.Unlock()
	q.lost.Add(int64(lost))
	if lost+open == 0 {
		return nil
	}
	return fmt.Errorf("%d charges, refunds and settlements are lost, or their outcome is unknown: the store did not answer before the shutdown", lost+open)
}
