package awsdb

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"time"
)

// Loop starts goroutines, waits, and draws random numbers. It is the only way of the store
// to the scheduler and to timers. A simulation replaces it by one event loop with a clock
// of its own. A caller of Wait or Sleep must hold no lock.
type Loop interface {
	// Start runs a function beside the caller. Its owner counts it as work.
	Start(run func())
	// Yield lets other goroutines run that are ready.
	Yield()
	// Wait waits until done is closed. When ctx ends before, it returns ctx's error.
	Wait(ctx context.Context, done <-chan struct{}) error
	// Sleep waits for d, or returns an error at once if ctx would be done before.
	Sleep(ctx context.Context, d time.Duration) error
	// Within returns a context that ends after d at the latest.
	Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	// Draw returns a random number from 0 up to below n; n must be above 0. A program
	// draws from the system's source, so that a copied process draws other numbers.
	Draw(n int64) int64
}

// Goroutines is the loop of a program.
type Goroutines struct{}

// Start implements [Loop].
func (Goroutines) Start(run func()) { go run() }

// Yield implements [Loop].
func (Goroutines) Yield() { runtime.Gosched() }

// Wait implements [Loop].
func (Goroutines) Wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sleep implements [Loop].
func (Goroutines) Sleep(ctx context.Context, d time.Duration) error {
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

// Within implements [Loop].
func (Goroutines) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// Draw implements [Loop].
func (Goroutines) Draw(n int64) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                     // never fails
	return int64(binary.LittleEndian.Uint64(b[:]) % uint64(n)) // #nosec G115 -- n is above 0
}
