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
// there are as many, or a full batch waits, the store does not answer: a new booking
// goes into the queue.
const maxLate = 16

// errLate says that a booking goes on, or waits to be tried, and is kept. errLost says
// that there is no room for it.
var (
	errLate = fmt.Errorf("%w: it takes too long to answer a charge", limiter.ErrUnavailable)
	errLost = fmt.Errorf("%w: too many bookings wait for it", limiter.ErrUnavailable)
)

// Stages of a first try.
const (
	awaited int32 = iota // its caller waits
	over                 // it has ended, and its caller has the outcome
	late                 // its caller was told that it is kept
)

// attempt tries a booking for the first time, and returns the outcome. If that takes
// longer than wait it returns errLate, and the booking goes on. If many go on already, it
// is not tried now, and is kept at once. again is tried in its place later.
func (k *kept) attempt(wait time.Duration, first, again booking) error {
	k.begin()
	if k.crowded() {
		defer k.end()
		if !k.keep(again) {
			return errLost
		}
		return errLate
	}
	var stage atomic.Int32
	result := make(chan error, 1)
	k.tries.Go(func() {
		defer k.end()
		ctx, stop := context.WithTimeout(k.ctx, k.budget)
		defer stop()
		err := first(ctx)
		if stage.CompareAndSwap(awaited, over) {
			result <- err
			return
		}
		k.arrive(err, again)
	})
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
	}
	k.late.Add(1)
	if !stage.CompareAndSwap(awaited, late) {
		k.late.Add(-1)
		return <-result
	}
	return errLate
}

// crowded reports whether as many first tries go on as may, or enough others wait.
func (k *kept) crowded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.queue)+k.trying >= together || k.late.Load() >= int64(min(maxLate, k.most))
}

// arrive ends a first try whose caller was told that it is kept.
func (k *kept) arrive(err error, again booking) {
	switch {
	case err == nil:
		k.booked.Add(1)
	case errors.Is(err, limiter.ErrUncertain):
		k.uncertain.Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		k.late.Add(-1) // before, so that it counts once
		k.keep(again)
		return
	default:
		k.refused(err)
	}
	k.late.Add(-1)
}
