package main

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit/ratelimit/config"
)

// tellPause is between two tries to tell the store of changed limits.
const tellPause = time.Second

// watch follows the configuration's files until ctx ends. What cannot be used is
// reported, and what is in force stays.
func (s *service) watch(ctx context.Context, file string, opts config.Options) error {
	return config.Watch(ctx, file, opts, func(cfg *config.Config, err error) {
		if err == nil {
			err = s.reload(ctx, cfg)
		}
		if err != nil {
			s.metrics.failed()
			s.health.LoadFailed(err, time.Now())
			s.log.ErrorContext(ctx, "the new configuration is not used", "error", err)
			return
		}
		for _, w := range cfg.Warnings {
			s.log.WarnContext(ctx, "configuration", "warning", w.String())
		}
		s.log.InfoContext(ctx, "configuration loaded", "files", len(cfg.Files), "hash", cfg.Hash)
	})
}

// reload puts a new configuration in force, also while the store does not answer:
// then tell goes on trying.
func (s *service) reload(ctx context.Context, cfg *config.Config) error {
	if err := s.openNamespaces(ctx, cfg.Rules); err != nil { // the first request tries again
		s.log.WarnContext(ctx, "a namespace could not be opened", "error", err)
	}
	err := s.apply(ctx, cfg)
	if _, untold := errors.AsType[untoldError](err); !untold {
		return err
	}
	s.log.WarnContext(ctx, "the new limits reach buckets in use when the store can be told", "error", err)
	select {
	case s.untold <- struct{}{}:
	default: // tell is to try already
	}
	return nil
}

// tell tells the store that limits have changed, where reload could not, until ctx
// ends.
func (s *service) tell(ctx context.Context) error {
	for {
		select {
		case <-s.untold:
		case <-ctx.Done():
			return nil
		}
		for s.store.RaiseGeneration(ctx) != nil {
			select {
			case <-time.After(tellPause):
			case <-ctx.Done():
				return nil
			}
		}
		s.log.InfoContext(ctx, "the store is told of the new limits")
	}
}
