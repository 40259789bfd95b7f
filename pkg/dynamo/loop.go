package dynamo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"time"
)

// loop is how a store starts what runs beside its callers, waits, and draws by
// chance. It has goroutines and timers; the simulation puts one event loop, with a
// clock of its own, in their place. Nobody holds a lock while it waits.
type loop interface {
	// start runs something beside the caller. Its owner counts it as work.
	start(run func())
	// yield lets others run that are ready to.
	yield()
	// wait waits until done is closed. When ctx ends before, it returns ctx's error.
	wait(ctx context.Context, done <-chan struct{}) error
	// sleep waits for d, or returns an error at once if ctx would be done before.
	sleep(ctx context.Context, d time.Duration) error
	// within returns a context that ends after d at the latest.
	within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	// draw returns a number from 0 up to below n, which is above 0. A program has it from
	// the system: a copy of the process has other ones.
	draw(n int64) int64
}

// goroutines is the loop of a program.
type goroutines struct{}

func (goroutines) start(run func()) { go run() }

func (goroutines) yield() { runtime.Gosched() }

func (goroutines) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (goroutines) sleep(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (goroutines) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (goroutines) draw(n int64) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                     // never fails
	return int64(binary.LittleEndian.Uint64(b[:]) % uint64(n)) // #nosec G115 -- n is above 0
}

// serve has a lane run beside its caller, who holds a piece of work.
func (s *Store) serve(l *lane) {
	s.work.Add(1)
	s.loop.start(func() { s.run(l) })
}
