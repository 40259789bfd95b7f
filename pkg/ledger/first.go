package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxLate is how many first tries may go on after their callers were answered. While
// there are as many, or a full batch waits, the store does not answer: a new charge
// goes into the queue.
const maxLate = 16

// errLate says that a charge goes on, or waits to be tried, and is kept. errLost says
// that there is no room for it.
var (
	errLate = fmt.Errorf("%w: no answer to a charge in time", limiter.ErrUnavailable)
	errLost = fmt.Errorf("%w: the queue of pending charges is full", limiter.ErrUnavailable)
)

// Stages of a first try.
const (
	awaited int32 = iota // its caller waits
	over                 // it has ended, and its caller has the outcome
	late                 // its caller was told that it is kept
)

// attempt tries a charge for the first time, and returns the outcome. If that takes
// longer than wait it returns errLate, and the charge goes on. If many go on already, it
// is not tried now, and is kept at once. again is tried in its place later.
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

// crowded reports whether as many first tries go on as may, or enough others wait.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending)+q.trying >= together || q.late.Load() >= int64(min(maxLate, q.most))
}

// arrive ends a first try whose caller was told that it is kept.
func (q *queue) endLate(err error, again charge) {
	switch {
	case err == nil:
		q.booked.Add(1)
	case errors.Is(err, limiter.ErrUncertain):
		q.uncertain.Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		q.late.Add(-1) // before, so that it counts once
		q.add(again)
		return
	default:
		q.refused(err)
	}
	q.late.Add(-1)
}
