package fleet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// Fresh is for how long the reports of the others are kept, so that many readers cost no more than one.
	Fresh = 5 * time.Second
	// readTime bounds a read of reports.
	readTime = 2 * time.Second
	// refusedPause is for how long a store that permits no reports is not asked.
	refusedPause = 10 * time.Minute
)

// asking asks the store for reports when that is due, and for no more than one caller at a time.
type asking struct {
	now func() time.Time
	log *slog.Logger

	reading chan struct{} // holds a token while a read is under way

	mu      sync.Mutex
	at      time.Time // of the last read; zero = none yet
	failing bool      // the last call failed
	until   time.Time // the store permits no reports, and is not asked before
}

func newAsking(cfg *Config) asking {
	return asking{now: cfg.Now, log: cfg.Logger, reading: make(chan struct{}, 1)}
}

// ask has reports read, and taken with a.mu held, unless that was done in the time of Fresh, whether it failed or not. A
// caller that leaves does not wait for the read of another.
func (a *asking) ask(ctx context.Context, failure string, read func(context.Context) error, take func(at time.Time)) {
	select {
	case a.reading <- struct{}{}:
		defer func() { <-a.reading }()
	case <-ctx.Done():
		return
	}
	if !a.due() {
		return
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime) // it is for the next callers, too
	err := read(asked)
	cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = a.now()
	if err != nil {
		a.failed(ctx, failure, err)
		return
	}
	a.failing = false
	take(a.at)
}

// due reports whether the reports are to be read.
func (a *asking) due() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	return !now.Before(a.until) && (a.at.IsZero() || now.Sub(a.at) >= Fresh || now.Before(a.at))
}

// failed notes a failure, of which the first of a row has a line. a.mu is held.
func (a *asking) failed(ctx context.Context, message string, err error) {
	if errors.Is(err, limiter.ErrInvalid) { // a person has to mend something
		a.until = a.now().Add(refusedPause)
	}
	level := slog.LevelWarn
	if a.failing || errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrClosed) { // an outage has a line of its own
		level = slog.LevelDebug
	}
	a.failing = true
	a.log.LogAttrs(ctx, level, message, slog.Any("error", err)) //nolint:sloglint // the callers' messages are constants
}
