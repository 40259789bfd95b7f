package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// New builds the service bottom up; nothing listens yet. When it returns
// without an error the store is ready: the first request pays for nothing.
func New(ctx context.Context, cfg *config.Config, log *slog.Logger) (*Service, error) {
	return NewOn(ctx, cfg, log, func(s *Service, ctx context.Context) error { return s.openStore(ctx) })
}

// NewOn is newService on the store that open sets.
func NewOn(ctx context.Context, cfg *config.Config, log *slog.Logger, open func(*Service, context.Context) error) (*Service, error) {
	s := &Service{quiet: 5 * time.Second, untold: make(chan struct{}, 1), certificates: certificates{log: log}}
	s.control = controlPlane{files: cfg, first: make(chan struct{})}
	s.backend = backend{cfg: cfg, log: log, Clocks: limiter.NewClocks(nil), Registry: prometheus.NewRegistry(), ready: &s.health, starting: command.Starting{Log: log}}
	s.events = fleet.NewEvents(s.Clocks.Call)
	s.outages = &outages{log: log, events: s.events}
	s.activity = newActivity(s.Clocks.Call())
	s.fallback = embedded.New(s.fallbackConfig())
	s.outages.configured(cfg) // the store may fail before it is in force
	s.health.Store = s.outages.state
	var err error
	s.tracing, err = NewTracing(ctx, command.Version(), cfg.Tracing, log)
	if err == nil {
		err = open(s, ctx)
	}
	if err == nil {
		err = s.build(cfg) //nolint:contextcheck // the service outlives the start
	}
	if err == nil {
		err = s.begin(ctx, cfg)
	}
	if err != nil {
		s.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

func (s *Service) build(cfg *config.Config) error {
	var err error
	s.limiter, err = limiter.New(limiter.Config{
		Store: s.tracing.Store(s.Store), Fallback: s.fallback,
		Timeout: cfg.Decision.Timeout, CacheTTL: cfg.Cache.TTL,
	})
	if err != nil {
		return err
	}
	if s.metrics, err = newServiceMetrics(s.Registry); err != nil {
		return err
	}
	if err = s.figures.begin(&cfg.Server.Metrics, s.metrics); err != nil {
		return err
	}
	if !s.Store.Capabilities().Local {
		if err := s.Registry.Register(newCacheMetrics(s.limiter.CacheStats)); err != nil {
			return err
		}
	}
	s.ledger, err = reservation.NewLedger(reservation.LedgerConfig{
		Limiter: s.limiter, Local: s.Store.Capabilities().Local, Now: s.Clocks.Call, Logger: s.log,
		Wait: max(reservation.DefaultWait, cfg.Decision.Timeout),
	})
	if err != nil {
		return err
	}
	if err := s.Registry.Register(newLedgerMetrics(s.ledger.Stats)); err != nil {
		return err
	}
	if s.counters, err = rls.NewCounters(); err != nil {
		return err
	}
	if s.mirror, err = newMirror(cfg.Mirror, s.Registry, s.log); err != nil {
		return err
	}
	var stats *rls.FileStats
	if cfg.Server.Statsd.Address != "" || cfg.Server.Debug.Address != "" {
		stats = &s.stats
	}
	var mirrored func(rls.Mirrored)
	if s.mirror != nil {
		mirrored = s.mirror.offer
	}
	s.RLS, err = rls.New(rls.Config{
		Decider: s.ledger, Settler: s.ledger, Now: s.Clocks.Call, Registerer: s.Registry, FileRegisterer: s.figures.registerer(), FileStats: stats, Counters: s.counters, Mirror: mirrored, Logger: s.log, OnFallback: s.outages.fallback, Observe: s.activity.observe,
		MaxInFlight: cfg.Server.GRPC.MaxInFlight, MaxBytes: bytesIn(memoryLimit()),
	})
	if err != nil {
		return err
	}
	s.fleet = s.newFleet()
	s.guards, err = newGuards(cfg, s.log, s.Registry)
	if err != nil {
		return err
	}
	return s.buildListeners(cfg)
}

// buildListeners makes the server of each listener.
func (s *Service) buildListeners(cfg *config.Config) error {
	secure, err := s.certificates.serverTLS("server.grpc.tls", cfg.Server.GRPC.TLS)
	if err != nil {
		return err
	}
	opts := append(grpcOptions(cfg.Server.GRPC, secure, s.guards.grpc), s.tracing.ServerOptions()...)
	if err = s.grpc.build(opts, s.guards.grpc, s.RLS); err != nil {
		return err
	}
	secure, err = s.certificates.serverTLS("server.http.tls", cfg.Server.HTTP.TLS)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(cfg.Server.HTTP.Address) // it was checked
	s.http.build(secure, s.log, admin.Handler(admin.Config{
		JSON:      s.RLS.JSONHandler(),
		Limitador: limitadorAPI(s).Handler(),
		Explainer: s.explainer(),
		Health:    &s.health,
		Gatherer:  s.Registry,
		PProf:     cfg.Server.HTTP.PProf,
		Hosts:     cfg.Server.HTTP.Hosts,
		Loopback:  config.IsLoopback(host),
	}))
	if s.figures.registry != nil {
		s.figures.build(nil, s.log, onlyAddresses(s.figures.handler(cfg.Server.Metrics.Path, s.Registry), cfg.Server.Metrics.Address))
	}
	if cfg.Server.Debug.Address != "" {
		s.debug.build(nil, s.log, onlyAddresses(debugHandler(s.InForce.Load, statsOf(s)), cfg.Server.Debug.Address))
	}
	s.statsd = newStatsd(cfg.Server.Statsd, statsOf(s), s.log)
	return s.buildAdmin(cfg)
}

// begin puts the configuration in force that the service starts with.
func (s *Service) begin(ctx context.Context, cfg *config.Config) error {
	if s.durable != nil { // another store would have to be read as a whole
		reportPlans(ctx, s.log, plansWithout(s.durable.EntityPlans(), cfg))
	}
	err := s.starting.Await(ctx, "the namespaces", func(ctx context.Context) error { return s.openNamespaces(ctx, cfg.Rules) })
	if err != nil {
		return fmt.Errorf("the store: %w", err)
	}
	err = s.starting.Await(ctx, "the key of reservations", func(ctx context.Context) error {
		_, err := s.stored.keyring(ctx, s.Store, cfg.Reservation)
		return err
	})
	if err != nil {
		return err
	}
	err = s.apply(ctx, cfg, admin.FromFiles)
	if _, untold := errors.AsType[untoldError](err); untold && (errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain)) {
		return s.starting.Await(ctx, "the generation of limits", s.Store.RaiseGeneration)
	}
	return err
}
