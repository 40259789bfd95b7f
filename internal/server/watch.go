package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// tellPause is the pause between two tries to send an update of limits to the store.
const tellPause = time.Second

// watch follows the configuration's files until ctx ends. A configuration that cannot
// be used is reported, and the one in force stays.
func (s *Service) watch(ctx context.Context, file string, opts config.Options) error {
	return config.Watch(ctx, file, opts, func(cfg *config.Config, err error) { s.take(ctx, cfg, err) })
}

// take puts new files in force, or reports why they are not.
func (s *Service) take(ctx context.Context, cfg *config.Config, err error) {
	if gone, ok := errors.AsType[*config.GoneError](err); ok {
		s.refused(admin.FromFiles, "the files lack a domain that is in force, or all its rules")
		s.log.WarnContext(ctx, "domains in force are gone from the configuration, or all their rules: the rules in force stay for now", "domains", gone.Domains, "for", gone.After)
		return
	}
	var gone []string // plans
	if err == nil {
		gone = plansWithout(s.InForce.Load().Snapshot.Plans(), cfg)
		err = s.Reload(ctx, cfg)
	}
	if err != nil {
		s.metrics.failed()
		s.refused(admin.FromFiles, publicReason(err))
		s.log.ErrorContext(ctx, "the new configuration is not used", "error", err)
		return
	}
	s.waiting.Store(&cfg.Restart)
	for _, w := range cfg.Warnings {
		s.log.WarnContext(ctx, "configuration", "warning", w.String())
	}
	reportPlans(ctx, s.log, gone)
	s.log.InfoContext(ctx, "configuration loaded", "files", len(cfg.Files), "domains", len(cfg.Rules.Domains()), "hash", cfg.Hash)
	s.events.Record(api.EventReload, fmt.Sprintf("A new configuration is in force: %d domains, hash %.12s.", len(cfg.Rules.Domains()), cfg.Hash))
}

// reportPlans reports plans that the configuration lacks, and that stored entities have or may have.
func reportPlans(ctx context.Context, log *slog.Logger, gone []string) {
	if len(gone) > 0 {
		log.WarnContext(ctx, "plans are gone from the configuration: for entities that have one stored, limits of other levels count; ratelimit doctor --entity tells", "plans", gone)
	}
}

// plansWithout returns those of the plans that a configuration lacks.
func plansWithout(plans []string, cfg *config.Config) []string {
	return slices.DeleteFunc(plans, func(name string) bool {
		_, there := cfg.Static.Plans[name]
		return there
	})
}

// refused notes that the newest part of the configuration is not used. The reason is one that any client may read.
func (s *Service) refused(of admin.Origin, reason string) {
	s.health.LoadFailed(of, reason, time.Now())
	s.events.Record(api.EventRefused, "A new configuration is not used: "+reason+".")
}

// publicReason says that a configuration is not used, and names the place of its first
// mistake. The texts of mistakes quote the files, and /readyz is open to all.
func publicReason(err error) string {
	problems, ok := errors.AsType[yamlcfg.Problems](err)
	if !ok || len(problems) == 0 {
		return "the new configuration cannot be used; the log has the reason"
	}
	where := problems[0].File
	if problems[0].Line > 0 {
		where += ":" + strconv.Itoa(problems[0].Line)
	}
	if more := len(problems) - 1; more > 0 {
		where += ", and " + strconv.Itoa(more) + " more"
	}
	return where + ": the log has the reason"
}

// obey reads the certificates again at each signal, and has the configuration read again, until
// ctx ends.
func (c *certificates) obey(ctx context.Context, log *slog.Logger, hangups <-chan os.Signal, ask chan<- struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
		}
		log.InfoContext(ctx, "reading the configuration and the certificates again: SIGHUP")
		for _, pair := range c.pairs {
			pair.read(ctx)
		}
		select {
		case ask <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
	}
}

// Reload puts a new configuration in force, also while the store does not answer:
// then tell goes on trying.
func (s *Service) Reload(ctx context.Context, cfg *config.Config) error {
	s.control.mu.Lock()
	defer s.control.mu.Unlock()
	err := s.putInForce(ctx, cfg, admin.FromFiles)
	if err == nil {
		s.control.files = cfg
	}
	return err
}

// putInForce puts a configuration of the files in force, with the domains of the control plane. Its newest part is of
// an origin.
func (s *Service) putInForce(ctx context.Context, cfg *config.Config, newest admin.Origin) error {
	cfg, err := s.control.join(ctx, cfg, s.log)
	if err != nil {
		return err
	}
	if err := s.openNamespaces(ctx, cfg.Rules); err != nil { // the first request tries again
		s.log.WarnContext(ctx, "a namespace could not be opened", "error", err)
	}
	err = s.apply(ctx, cfg, newest)
	if _, untold := errors.AsType[untoldError](err); !untold {
		return err
	}
	s.log.WarnContext(ctx, "the store does not answer: the new limits apply to buckets in use when it does", "error", err)
	select {
	case s.untold <- struct{}{}:
	default: // tell has a token already
	}
	return nil
}

// Tell sends updates of limits to the store where reload could not, until ctx ends.
func (s *Service) Tell(ctx context.Context) error {
	for {
		select {
		case <-s.untold:
		case <-ctx.Done():
			return nil
		}
		for s.Store.RaiseGeneration(ctx) != nil {
			select {
			case <-time.After(tellPause):
			case <-ctx.Done():
				return nil
			}
		}
		s.log.InfoContext(ctx, "the store has the new limits")
	}
}
