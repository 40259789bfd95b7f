package awscmd

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// openArchive returns the archive of the flags, or nil without one. A bucket that does not exist
// is an error now: the first event may come in months.
func (f *aggregateFlags) openArchive(ctx context.Context, log *slog.Logger) (aggregator.Archive, error) {
	if f.archive == "" {
		return nil, nil
	}
	at, err := parseArchive(f.archive)
	if err != nil {
		return nil, command.Misused(err)
	}
	archive, err := openArchive(ctx, at)
	if err != nil {
		return nil, command.Failed(err)
	}
	err = archive.Check(ctx)
	if errors.Is(err, limiter.ErrInvalid) {
		return nil, command.Failed(err)
	}
	if err != nil {
		log.WarnContext(ctx, "the archive cannot be checked", "archive", at.String(), "error", err)
	}
	return archive, nil
}
