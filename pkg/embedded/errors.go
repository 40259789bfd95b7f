package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func contextErr(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// unavailable returns the error of the contract for an error of the file.
func unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, datafile.ErrClosed):
		return fmt.Errorf("%w: %w", limiter.ErrClosed, err)
	}
	return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
}

func errNoFile() error {
	return fmt.Errorf("%w: this store has no data file", limiter.ErrInvalid)
}

func errCursor(text string) error {
	return fmt.Errorf("%w: %.100q is no cursor of a page of this list", limiter.ErrInvalid, text)
}

// errEnough ends an iteration.
var errEnough = errors.New("enough")

// enough returns nil for errEnough.
func enough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// closed waits until a part of the store has ended.
func closed(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: closing: %w", limiter.ErrUnavailable, ctx.Err())
	}
}
