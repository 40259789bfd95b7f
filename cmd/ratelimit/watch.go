package main

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/config"
)

// watch follows the configuration's files until ctx ends. What cannot be used is
// reported, and what is in force stays.
func (s *service) watch(ctx context.Context, file string, opts config.Options) error {
	return config.Watch(ctx, file, opts, func(cfg *config.Config, err error) {
		if err == nil {
			err = s.apply(ctx, cfg)
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
