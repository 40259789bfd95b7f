package server

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// untoldError means that a configuration is in force, and that its update of limits
// did not reach the store. Until it does, buckets in use can keep their old limits.
type untoldError struct{ error }

func (e untoldError) Unwrap() error { return e.error }

// apply puts a configuration in force: rules and limits together. Its newest part is of an origin. After any
// error but an untoldError the one before it still is.
func (s *Service) apply(ctx context.Context, cfg *config.Config, newest admin.Origin) error {
	snapshot, err := limiter.NewSnapshot(cfg.Static)
	if err != nil {
		return err
	}
	ring, err := s.stored.keyring(ctx, s.Store, cfg.Reservation)
	if err != nil {
		return err
	}
	if err := s.admin.setCredentials(&cfg.Server.Admin); err != nil {
		return err
	}
	s.RLS.Reload(cfg.Rules, &rls.Options{
		Keyring:       ring,
		Lifetime:      cfg.Reservation.TTL,
		Headers:       responseHeaders(cfg.Headers),
		NoRules:       cfg.XDS.Address != "" && !s.control.known,
		Files:         cfg.Envoyproxy.FileOptions,
		Limitador:     cfg.Limitador,
		UnmatchedDeny: cfg.DenyUnknown, Body: cfg.Body,
		OnUnavailable: cfg.Static.OnUnavailable,
		Snapshot:      snapshot,
		Denials:       rls.DenialLog{PerSecond: cfg.Log.Denials.PerSecond, WholeEntity: cfg.Log.Denials.Whole},
		JSON:          rls.JSONOptions{Refunds: s.cfg.Server.HTTP.Refunds, Charges: s.cfg.Server.HTTP.Charges},
	})
	s.InForce.Store(&admin.InForce{Rules: cfg.Rules, UnmatchedDeny: cfg.DenyUnknown, Snapshot: snapshot, Limitador: cfg.Limitador, Files: cfg.Envoyproxy.FileOptions})
	s.budgets.Store(cfg.Budgets.Set)
	s.outages.configured(cfg)
	now := time.Now()
	s.health.Loaded(newest, cfg.Files, cfg.Hash, now)
	s.metrics.loaded(newest, now)
	s.activity.undefined.clear()
	missing := cfg.Envoyproxy.NeedsDomain && len(cfg.Rules.Domains()) == 0 // it is unhealthy then for probes of envoyproxy/ratelimit
	s.health.SetEmpty(missing)
	s.grpc.setEmpty(missing)
	if err := s.limiter.Use(ctx, snapshot); err != nil {
		return untoldError{fmt.Errorf("telling the store of the limits: %w", err)}
	}
	return nil
}

func responseHeaders(h config.Headers) rls.Headers {
	return rls.Headers{RetryAfter: h.RetryAfter, XRateLimit: h.XRateLimit, OpenAI: rls.OpenAIHeaders(h.OpenAI), IETF: h.IETF}
}
