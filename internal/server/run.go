package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// listenKeys names the keys of the addresses, for errors.
type listenKeys struct{ grpc, http string }

// ownListenKeys are those of the configuration and of serve.
func ownListenKeys() listenKeys {
	return listenKeys{grpc: "server.grpc.address, or --grpc-address", http: "server.http.address, or --http-address"}
}

// listen opens the listeners, so that a port that is taken is an error at once.
func (s *Service) listen(ctx context.Context, keys listenKeys) error {
	var lc net.ListenConfig
	var err error
	network, address := s.cfg.Server.GRPC.Listen()
	if network == "unix" {
		err = removeStale(ctx, address, "server.grpc.address")
	}
	if err == nil {
		s.grpc.listener, err = lc.Listen(ctx, network, address)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", keys.grpc, err)
	}
	if err = s.http.listen(ctx, keys.http, s.cfg.Server.HTTP.Address); err != nil {
		_ = s.grpc.listener.Close() // the other error is the one to report
		return err
	}
	err = s.admin.listen(ctx, s.cfg, s.guards.admin, s.log)
	if err == nil {
		err = s.figures.listen(ctx, "server.metrics.address", s.cfg.Server.Metrics.Address)
	}
	if err == nil {
		err = s.debug.listen(ctx, "server.debug.address", s.cfg.Server.Debug.Address)
	}
	if err != nil {
		_, _, _ = s.grpc.listener.Close(), s.http.listener.Close(), s.admin.close() // the same
		return err
	}
	return nil
}

// run serves until ctx ends or a listener fails, and drains in order. It reloads the
// configuration when its files change, and at each hangup signal.
func (s *Service) run(ctx context.Context, file string, opts config.Options, hangups <-chan os.Signal) error {
	group, groupCtx := errgroup.WithContext(ctx)
	s.health.SetReady() // before anything can end: drain has the last word
	s.grpc.setHealth(grpc_health_v1.HealthCheckResponse_SERVING)
	group.Go(func() error { return s.guards.run(groupCtx) })
	group.Go(func() error { return s.grpc.serve(s.guards.grpc) })
	group.Go(func() error { return s.http.serve(s.guards.http) })
	for _, l := range s.admin.listeners {
		group.Go(func() error { return s.admin.serve(l) })
	}
	if s.figures.registry != nil {
		group.Go(func() error { return s.figures.serve(s.guards.http) })
	}
	if s.debug.listener != nil {
		group.Go(func() error { return s.debug.serve(s.guards.http) })
	}
	answering, stop := context.WithCancel(context.WithoutCancel(ctx)) // until no call can come
	defer stop()
	group.Go(func() error { return s.statsd.run(answering) })
	group.Go(func() error { return s.mirror.run(answering) })
	group.Go(func() error { return s.fleet.Run(answering) })
	asked := make(chan struct{})
	opts.Reload = asked
	group.Go(func() error { return s.watch(groupCtx, file, opts) })
	group.Go(func() error { return s.certificates.obey(groupCtx, s.log, hangups, asked) })
	group.Go(func() error { return s.Tell(groupCtx) })
	group.Go(func() error { return s.dataWatch.run(groupCtx) })
	group.Go(func() error { return s.watchBudgets(answering) })
	group.Go(func() error { return s.makeTraffic(groupCtx) })
	group.Go(func() error {
		<-groupCtx.Done()
		s.drain(ctx)
		stop()
		return nil
	})
	if s.figures.listener != nil {
		s.log.InfoContext(ctx, "serving metrics", "address", s.figures.listener.Addr().String())
	}
	s.log.InfoContext(ctx, "serving", "grpc", s.grpc.listener.Addr().String(), "http", s.http.listener.Addr().String(), "admin", s.admin.name(), "version", command.Version())
	s.events.Record(api.EventStart, fmt.Sprintf("The service starts: version %s, store %s.", command.Version(), s.cfg.Store.Type))
	err := group.Wait()
	s.Close(context.WithoutCancel(ctx))
	return err
}

// drain turns traffic away, ends the calls in flight, and stops the listeners. The
// HTTP side stops last, so that its health can be read to the end.
func (s *Service) drain(ctx context.Context) {
	s.health.SetNotReady("shutting down")
	s.grpc.setHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	patience := drainTime(ctx, s.cfg)
	s.events.Record(api.EventStop, "The service stops.")
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
	for _, server := range []*http.Server{s.figures.server, s.debug.server} {
		if server != nil {
			_ = server.Close() // an answer with metrics need not end
		}
	}
}

// drainTime is how long the service goes on answering while it says that it is not
// ready. Only after an orchestrator's SIGTERM do clients move to other replicas.
func drainTime(ctx context.Context, cfg *config.Config) time.Duration {
	if errors.Is(context.Cause(ctx), command.ErrTerminated) {
		return cfg.Drain
	}
	return 0
}

// watchBudgets compares the usage in the store with the budgets in force. In a table of DynamoDB that is done
// by ratelimit aggregate.
func (s *Service) watchBudgets(ctx context.Context) error {
	if s.usage == nil {
		return nil
	}
	return s.alerts.Run(ctx, func(ctx context.Context) error {
		s.usage.WatchBudgets(ctx, 0, s.budgets.Load, func(e limiter.BudgetEvent) { s.budgetEvents.tell(&s.backend, e) })
		return nil
	})
}
