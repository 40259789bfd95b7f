package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// startTimeout bounds how long the start waits for the store in all: for credentials,
	// for the table, and for each thing that it asks of the table.
	startTimeout = 20 * time.Second
	// startAttempt is how long one try may take.
	startAttempt = 5 * time.Second
	// startPause is between two tries.
	startPause = time.Second
)

// starting is the waiting of a service that starts, for its store.
type starting struct {
	log *slog.Logger
	by  time.Time // when it gives up; zero = it has not waited yet
}

// await repeats a step of the start until it succeeds or fails for a reason that does
// not pass. It gives up when startTimeout is over since the first wait. The step may
// be repeated after any outcome.
func (s *starting) await(ctx context.Context, what string, try func(context.Context) error) error {
	if s.by.IsZero() {
		s.by = time.Now().Add(startTimeout)
	}
	waiting, stop := context.WithDeadline(ctx, s.by)
	defer stop()
	for first := true; ; first = false {
		err := attempt(waiting, try)
		if err == nil || !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain) {
			return err
		}
		if first {
			s.log.WarnContext(ctx, "start delayed", "waiting_for", what, "at_most", startTimeout, "error", err)
		}
		select {
		case <-time.After(startPause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("%w while waiting for %s: %w", context.Cause(ctx), what, err)
			}
			return fmt.Errorf("gave up after %v: %w", startTimeout, err)
		}
	}
}

func attempt(ctx context.Context, try func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, startAttempt)
	defer stop()
	return try(ctx)
}
