package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// StartTimeout bounds how long the start waits for the store in all: for credentials,
	// for the table, and for each thing that it asks of the table.
	StartTimeout = 20 * time.Second
	// StartAttempt is how long one try may take.
	StartAttempt = 5 * time.Second
	// startPause is between two tries.
	startPause = time.Second
)

// Starting is the waiting of a service that starts, for its store.
type Starting struct {
	Log *slog.Logger
	by  time.Time // when it gives up; zero = it has not waited yet
}

// Await repeats a step of the start until it succeeds or fails for a reason that does
// not pass. It gives up when startTimeout is over since the first wait. The step may
// be repeated after any outcome.
func (s *Starting) Await(ctx context.Context, what string, try func(context.Context) error) error {
	if s.by.IsZero() {
		s.by = time.Now().Add(StartTimeout)
	}
	waiting, stop := context.WithDeadline(ctx, s.by)
	defer stop()
	for first := true; ; first = false {
		err := Attempt(waiting, try)
		if err == nil || !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain) {
			return err
		}
		if first {
			s.Log.WarnContext(ctx, "start delayed", "waiting_for", what, "at_most", StartTimeout, "error", err)
		}
		select {
		case <-time.After(startPause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("%w while waiting for %s: %w", context.Cause(ctx), what, err)
			}
			return fmt.Errorf("gave up after %v: %w", StartTimeout, err)
		}
	}
}

// Attempt makes one try, of at most [StartAttempt].
func Attempt(ctx context.Context, try func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, StartAttempt)
	defer stop()
	return try(ctx)
}
