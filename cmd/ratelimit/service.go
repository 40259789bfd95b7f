package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/clocks"
	"github.com/ratelimit/ratelimit/internal/tracing"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/ledger"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// service is everything that serve starts, from the store up to the listeners.
type service struct {
	backend

	budgets  atomic.Pointer[budget.Set]
	fallback *embedded.Store // decides by limiter.Local while the store does not answer
	untold   chan struct{}   // holds a token while tell has an update of limits to repeat
	limiter  *limiter.Limiter
	ledger   *ledger.Ledger
	stored   atomic.Pointer[reservation.Keyring] // of the key in the store; nil = not read yet
	rls      *rls.Service
	activity *activity
	tracing  *tracing.Tracing // nil = off
	inForce  atomic.Pointer[admin.InForce]
	health   admin.Health
	metrics  *serviceMetrics

	grpc         grpcSide
	http         httpSide
	admin        adminSide
	guards       guards
	certificates certificates
	quiet        time.Duration // how long each side may take to end its last answers
}

const (
	// storeTime bounds the end of a store: a stop takes 5 s at most where nothing else is slow.
	storeTime = 4 * time.Second
	// traceTime bounds the sending of the last spans.
	traceTime = time.Second
)

// newService builds the service bottom up; nothing listens yet. When it returns
// without an error the store is ready: the first request pays for nothing.
func newService(ctx context.Context, cfg *config.Config, log *slog.Logger) (*service, error) {
	return newServiceOn(ctx, cfg, log, func(s *service, ctx context.Context) error { return s.openStore(ctx) })
}

// newServiceOn is newService on the store that open sets.
func newServiceOn(ctx context.Context, cfg *config.Config, log *slog.Logger, open func(*service, context.Context) error) (*service, error) {
	s := &service{quiet: 5 * time.Second, untold: make(chan struct{}, 1), certificates: certificates{log: log}}
	s.backend = backend{cfg: cfg, log: log, clocks: clocks.New(nil), registry: prometheus.NewRegistry(), outages: &outages{log: log}, ready: &s.health, starting: starting{log: log}}
	s.activity = newActivity(s.clocks.Call())
	s.fallback = embedded.New(s.fallbackConfig())
	s.outages.configured(cfg) // the store may fail before it is in force
	s.health.Store = s.outages.state
	var err error
	s.tracing, err = tracing.New(ctx, programVersion(), log)
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
		s.close(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

func (s *service) build(cfg *config.Config) error {
	var err error
	s.limiter, err = limiter.New(limiter.Config{
		Store: s.tracing.Store(s.store), Fallback: s.fallback,
		Timeout: cfg.Decision.Timeout, CacheTTL: cfg.Cache.TTL,
	})
	if err != nil {
		return err
	}
	if s.metrics, err = newServiceMetrics(s.registry); err != nil {
		return err
	}
	if !s.store.Capabilities().Local {
		if err := registerCacheMetrics(s.registry, s.limiter.CacheStats); err != nil {
			return err
		}
	}
	s.ledger, err = ledger.New(ledger.Config{
		Limiter: s.limiter, Local: s.store.Capabilities().Local, Now: s.clocks.Call, Logger: s.log,
		Wait: max(ledger.DefaultWait, cfg.Decision.Timeout),
	})
	if err != nil {
		return err
	}
	if err := registerLedgerMetrics(s.registry, s.ledger.Stats); err != nil {
		return err
	}
	s.rls, err = rls.New(rls.Config{
		Decider: s.ledger, Settler: s.ledger, Now: s.clocks.Call, Registerer: s.registry, Logger: s.log, OnFallback: s.outages.fallback, Observe: s.activity.observe,
		MaxInFlight: cfg.Server.GRPC.MaxInFlight, MaxBytes: bytesIn(memoryLimit()),
	})
	if err != nil {
		return err
	}
	s.guards, err = newGuards(cfg, s.log, s.registry)
	if err != nil {
		return err
	}
	return s.buildListeners(cfg)
}

// buildListeners makes the server of each listener.
func (s *service) buildListeners(cfg *config.Config) error {
	secure, err := s.certificates.serverTLS("server.grpc.tls", cfg.Server.GRPC.TLS)
	if err != nil {
		return err
	}
	opts := append(grpcOptions(cfg.Server.GRPC, secure, s.guards.grpc), s.tracing.ServerOptions()...)
	s.grpc.build(opts, s.guards.grpc, s.rls)
	secure, err = s.certificates.serverTLS("server.http.tls", cfg.Server.HTTP.TLS)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(cfg.Server.HTTP.Address) // it was checked
	s.http.build(secure, s.log, admin.Handler(admin.Config{
		JSON:      s.rls.JSONHandler(),
		Explainer: s.explainer(),
		Health:    &s.health,
		Gatherer:  s.registry,
		PProf:     cfg.Server.HTTP.PProf,
		Hosts:     cfg.Server.HTTP.Hosts,
		Loopback:  config.IsLoopback(host),
	}))
	return s.buildAdmin(cfg)
}

// begin puts the configuration in force that the service starts with.
func (s *service) begin(ctx context.Context, cfg *config.Config) error {
	err := s.starting.await(ctx, "the namespaces", func(ctx context.Context) error { return s.openNamespaces(ctx, cfg.Rules) })
	if err != nil {
		return fmt.Errorf("the store: %w", err)
	}
	err = s.starting.await(ctx, "the key of reservations", func(ctx context.Context) error {
		_, err := s.keyring(ctx, cfg.Reservation)
		return err
	})
	if err != nil {
		return err
	}
	err = s.apply(ctx, cfg)
	if _, untold := errors.AsType[untoldError](err); untold && (errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain)) {
		return s.starting.await(ctx, "the generation of limits", s.store.RaiseGeneration)
	}
	return err
}

func (s *service) explainer() *admin.Explainer {
	shards, _ := s.store.(admin.Sharder)
	return &admin.Explainer{InForce: s.inForce.Load, Decider: s.limiter, Now: s.clocks.Call, Shards: shards}
}

// untoldError means that a configuration is in force, and that its update of limits
// did not reach the store. Until it does, buckets in use can keep their old limits.
type untoldError struct{ error }

func (e untoldError) Unwrap() error { return e.error }

// apply puts a configuration in force: rules and limits together. After any error
// but an untoldError the one before it still is.
func (s *service) apply(ctx context.Context, cfg *config.Config) error {
	snapshot, err := limiter.NewSnapshot(cfg.Static)
	if err != nil {
		return err
	}
	ring, err := s.keyring(ctx, cfg.Reservation)
	if err != nil {
		return err
	}
	if err := s.admin.setTokens(cfg.Server.Admin.Tokens); err != nil {
		return err
	}
	s.rls.Reload(cfg.Rules, rls.Options{
		Keyring:       ring,
		Lifetime:      cfg.Reservation.TTL,
		Headers:       responseHeaders(cfg.Headers),
		UnmatchedDeny: cfg.DenyUnknown,
		OnUnavailable: cfg.Static.OnUnavailable,
		Snapshot:      snapshot,
		Denials:       rls.DenialLog{PerSecond: cfg.Log.Denials.PerSecond, WholeEntity: cfg.Log.Denials.Whole},
		JSON:          rls.JSONOptions{Refunds: s.cfg.Server.HTTP.Refunds, Charges: s.cfg.Server.HTTP.Charges},
	})
	s.inForce.Store(&admin.InForce{Rules: cfg.Rules, UnmatchedDeny: cfg.DenyUnknown, Snapshot: snapshot})
	s.budgets.Store(cfg.Budgets.Set)
	s.outages.configured(cfg)
	now := time.Now()
	s.health.Loaded(cfg.Files, cfg.Hash, now)
	s.metrics.loaded(now)
	if err := s.limiter.Use(ctx, snapshot); err != nil {
		return untoldError{fmt.Errorf("telling the store of the limits: %w", err)}
	}
	return nil
}

func responseHeaders(h config.Headers) rls.Headers {
	return rls.Headers{RetryAfter: h.RetryAfter, XRateLimit: h.XRateLimit, OpenAI: rls.OpenAIHeaders(h.OpenAI), IETF: h.IETF}
}

// listen opens the listeners, so that a port that is taken is an error at once.
func (s *service) listen(ctx context.Context) error {
	var lc net.ListenConfig
	var err error
	if s.grpc.listener, err = lc.Listen(ctx, "tcp", s.cfg.Server.GRPC.Address); err != nil {
		return fmt.Errorf("server.grpc.address, or --grpc-address: %w", err)
	}
	if s.http.listener, err = lc.Listen(ctx, "tcp", s.cfg.Server.HTTP.Address); err != nil {
		_ = s.grpc.listener.Close() // the other error is the one to report
		return fmt.Errorf("server.http.address, or --http-address: %w", err)
	}
	if err := s.admin.listen(ctx, s.cfg, s.guards.admin, s.log); err != nil {
		_, _ = s.grpc.listener.Close(), s.http.listener.Close() // the same
		return err
	}
	return nil
}

// run serves until ctx ends or a listener fails, and drains in order. It reloads the
// configuration when its files change, and at each hangup signal.
func (s *service) run(ctx context.Context, file string, opts config.Options, hangups <-chan os.Signal) error {
	group, groupCtx := errgroup.WithContext(ctx)
	s.health.SetReady() // before anything can end: drain has the last word
	s.grpc.setHealth(grpc_health_v1.HealthCheckResponse_SERVING)
	group.Go(func() error { return s.guards.run(groupCtx) })
	group.Go(func() error { return s.grpc.serve(s.guards.grpc) })
	group.Go(func() error { return s.http.serve(s.guards.http) })
	group.Go(s.admin.serve)
	asked := make(chan struct{})
	opts.Reload = asked
	group.Go(func() error { return s.watch(groupCtx, file, opts) })
	group.Go(func() error { return s.obey(groupCtx, hangups, asked) })
	group.Go(func() error { return s.tell(groupCtx) })
	group.Go(func() error { return s.dataWatch.run(groupCtx) })
	group.Go(func() error { return s.watchBudgets(groupCtx) })
	group.Go(func() error {
		<-groupCtx.Done()
		s.drain(ctx)
		return nil
	})
	s.log.InfoContext(ctx, "serving", "grpc", s.grpc.listener.Addr().String(), "http", s.http.listener.Addr().String(), "admin", cmp.Or(s.admin.name, config.AdminOff), "version", programVersion())
	err := group.Wait()
	s.close(context.WithoutCancel(ctx))
	return err
}

// drain turns traffic away, ends the calls in flight, and stops the listeners. The
// HTTP side stops last, so that its health can be read to the end.
func (s *service) drain(ctx context.Context) {
	s.health.SetNotReady("shutting down")
	s.grpc.setHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	patience := drainTime(ctx, s.cfg)
	s.log.InfoContext(ctx, "draining", "reason", context.Cause(ctx), "patience", patience)
	ctx = context.WithoutCancel(ctx)
	waited, stop := context.WithTimeout(ctx, patience)
	defer stop()
	<-waited.Done()
	s.grpc.stop(ctx, s.quiet)
	for _, server := range []*http.Server{s.admin.server, s.http.server} {
		if err := stopHTTP(ctx, server, s.quiet); err != nil {
			s.log.WarnContext(ctx, "connections were cut", "error", err)
		}
	}
}

// drainTime is how long the service goes on answering while it says that it is not
// ready. Only after an orchestrator's SIGTERM do clients move to other replicas.
func drainTime(ctx context.Context, cfg *config.Config) time.Duration {
	if errors.Is(context.Cause(ctx), errTerminated) {
		return cfg.Drain
	}
	return 0
}

// close frees everything that newService made, also the parts made before it failed.
// No call is answered any more.
func (s *service) close(ctx context.Context) {
	if s.grpc.server != nil {
		s.grpc.server.Stop()
	}
	s.closeLedger(ctx)
	if s.limiter != nil {
		s.limiter.Close()
	}
	s.closeStore(ctx, s.fallback)
	if s.store != nil { // else it could not be opened
		s.closeStore(ctx, s.store)
	}
	ctx, stop := context.WithTimeout(ctx, traceTime)
	defer stop()
	if err := s.tracing.Close(ctx); err != nil {
		s.log.WarnContext(ctx, "the last spans were not sent", "error", err)
	}
}

// closeStore ends a store. Each has a time of its own: one that is slow takes nothing from the next.
func (s *service) closeStore(ctx context.Context, store limiter.Store) {
	ctx, stop := context.WithTimeout(ctx, min(s.quiet, storeTime))
	defer stop()
	if err := store.Close(ctx); err != nil {
		s.log.ErrorContext(ctx, "closing the store", "error", err)
	}
}

// closeLedger books the pending charges, as far as the store answers.
func (s *service) closeLedger(ctx context.Context) {
	if s.ledger == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, s.quiet)
	defer stop()
	if err := s.ledger.Close(ctx); err != nil {
		s.log.ErrorContext(ctx, "closing the ledger", "error", err)
	}
}
