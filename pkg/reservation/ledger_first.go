package reservation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxLate is the most first tries that may continue after their callers were answered. With so
// many, or with a full batch in the queue, the store counts as not answering: a new charge goes
// into the queue.
const maxLate = 16

// errLate reports that a charge continues, or waits in the queue. errLost reports that there is no
// room for it.
var (
	errLate = fmt.Errorf("%w: no answer to a charge in time", limiter.ErrUnavailable)
	errLost = fmt.Errorf("%w: the queue of pending charges is full", limiter.ErrUnavailable)
)

// Stages of a first try.
const (
	awaited int32 = iota // its caller waits
	over                 // it has ended, and its caller has its outcome
	late                 // its caller was answered that it is queued
)

// attempt tries a charge for the first time, and returns the outcome. After wait it returns
// errLate, and the try continues. If too many continue already, the charge goes into the queue at
// once, where again is tried later.
func (q *queue) attempt(wait time.Duration, first, again charge) error {
	q.begin()
	if q.full() {
		defer q.end()
		if !q.add(again) {
			return errLost
		}
		return errLate
	}
	var stage atomic.Int32
	result := make(chan error, 1)
	q.tries.Go(func() {
		defer q.end()
		ctx, stop := context.WithTimeout(q.ctx, q.budget)
		defer stop()
		err := first(ctx)
		if stage.CompareAndSwap(awaited, over) {
			result <- err
			return
		}
		q.endLate(err, again)
	})
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
	}
	q.late.Add(1)
	if !stage.CompareAndSwap(awaited, late) {
		q.late.Add(-1)
		return <-result
	}
	return errLate
}

// full reports whether too many first tries continue, or a full batch waits.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending)+q.trying >= together || q.late.Load() >= int64(min(maxLate, q.most))
}

// endLate ends a first try whose caller was answered that it is queued.
func (q *queue) endLate(err error, again charge) {
	switch {
	case err == nil:
		q.booked.Add(1)
	case errors.Is(err, limiter.ErrUncertain): // rule: a late try of unknown outcome is not repeated
		q.uncertain.Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		q.late.Add(-1) // before, so that it counts once
		q.add(again)   // rule: a late try without an answer is queued
		return
	default:
		q.refused(err)
	}
	q.late.Add(-1)
}
