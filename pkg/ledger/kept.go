package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/internal/sampledlog"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// together is how many kept bookings are tried at the same time.
	together = 64
	// pause is how long the store is left alone after it did not answer.
	pause = time.Second
)

// booking books something. It may be called again when it returns an error of
// limiter.ErrUnavailable that is none of limiter.ErrUncertain, and only then.
type booking func(ctx context.Context) error

// kept is the bookings that wait for the store, and who tries them.
type kept struct {
	most   int
	budget time.Duration
	log    *sampledlog.Log
	now    func() time.Time

	booked, lost, uncertain atomic.Int64

	late  atomic.Int64    // first tries that go on, of callers that were answered
	tries sync.WaitGroup  // first tries
	ctx   context.Context //nolint:containedctx // of all tries: done when close gives up on them

	mu     sync.Mutex
	queue  []booking
	trying int  // bookings that were in the queue, and are tried now
	first  int  // bookings that are tried for the first time
	closed bool // nothing new comes, but from who is counted in first
	over   bool // nobody tries any more

	wake  chan struct{} // holds a token when there is something to try, or nothing to come
	stop  context.CancelFunc
	ended chan struct{}
}

func newKept(most int, budget time.Duration, now func() time.Time, log *slog.Logger) *kept {
	ctx, stop := context.WithCancel(context.Background())
	k := &kept{most: most, budget: budget, now: now, log: sampledlog.New(log), ctx: ctx, wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	go k.run(ctx)
	return k
}

func (k *kept) stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Stats{Kept: len(k.queue) + k.trying + int(k.late.Load()), Booked: k.booked.Load(), Lost: k.lost.Load(), Uncertain: k.uncertain.Load()}
}

// keep keeps a booking, and reports false when there is no room or time for it.
func (k *kept) keep(b booking) bool {
	k.mu.Lock()
	ok := !k.over && (!k.closed || k.first > 0) && len(k.queue)+k.trying+int(k.late.Load()) < k.most
	if ok {
		k.queue = append(k.queue, b)
	}
	full := !k.closed
	k.mu.Unlock()
	if !ok {
		if k.lost.Add(1); full {
			k.trouble("full", "what was used is not booked: too many bookings wait for the store", slog.Int("most", k.most))
		}
		return false
	}
	k.signal()
	return true
}

// begin counts a booking that is tried for the first time, until end.
func (k *kept) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.first++
}

func (k *kept) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first--; k.closed {
		k.signal()
	}
}

func (k *kept) signal() {
	select {
	case k.wake <- struct{}{}:
	default: // it is awake already
	}
}

// run tries what is kept until ctx is done, or the queue is closed and empty.
func (k *kept) run(ctx context.Context) {
	defer close(k.ended)
	rest := false // the store did not answer
	for {
		if rest {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
		batch, more := k.next()
		if len(batch) > 0 {
			rest = !k.try(ctx, batch)
			continue
		}
		if !more {
			return
		}
		select {
		case <-k.wake:
			rest = false
		case <-ctx.Done():
			return
		}
	}
}

// next takes bookings out of the queue, and reports whether there can be others.
func (k *kept) next() (batch []booking, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(together, len(k.queue))
	batch = append(batch, k.queue[:n]...)
	clear(k.queue[:n]) // the array may live on
	k.queue = k.queue[n:]
	k.trying = n
	return batch, !k.closed || k.first > 0
}

// try tries bookings, and puts those back that the store did not answer to. It
// reports whether it answered all.
func (k *kept) try(ctx context.Context, batch []booking) bool {
	ctx, stop := context.WithTimeout(ctx, k.budget)
	defer stop()
	again := make([]bool, len(batch))
	var group sync.WaitGroup
	for i, b := range batch {
		group.Go(func() { again[i] = k.once(ctx, b) })
	}
	group.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trying = 0
	answered := true
	for i, b := range batch {
		if again[i] {
			k.queue, answered = append(k.queue, b), false
		}
	}
	return answered
}

// once tries a booking, and reports whether it is to be tried again.
func (k *kept) once(ctx context.Context, b booking) (again bool) {
	switch err := b(ctx); {
	case err == nil:
		k.booked.Add(1)
	case errors.Is(err, limiter.ErrUncertain):
		k.uncertain.Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		return true
	default:
		k.refused(err)
	}
	return false
}

// refused counts a booking that the store refuses for good.
func (k *kept) refused(err error) {
	k.lost.Add(1)
	k.trouble("refused", "what was used cannot be booked", slog.Any("error", err))
}

// trouble logs what calls can cause: at most one line a second of each kind.
func (k *kept) trouble(kind, message string, attr slog.Attr) {
	k.log.Write(k.ctx, k.now(), slog.LevelError, kind, message, attr)
}

// close ends the queue, see Ledger.Close.
func (k *kept) close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.signal()
	select {
	case <-k.ended:
	case <-ctx.Done():
	}
	k.mu.Lock()
	open := k.first
	k.over = true
	k.mu.Unlock()
	k.stop()
	<-k.ended
	k.tries.Wait() // they were told to end
	k.mu.Lock()
	lost := len(k.queue)
	k.queue = nil
	k.mu.Unlock()
	k.lost.Add(int64(lost))
	if lost+open == 0 {
		return nil
	}
	return fmt.Errorf("%d charges, refunds and settlements were not booked, as far as is known: the store did not answer until the end", lost+open)
}
