package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Service is everything that serve starts, from the store up to the listeners.
type Service struct {
	backend

	budgets      atomic.Pointer[limiter.BudgetSet]
	fallback     *embedded.Store // decides by limiter.Local while the store does not answer
	untold       chan struct{}   // holds a token while tell has an update of limits to repeat
	limiter      *limiter.Limiter
	ledger       *reservation.Ledger
	stored       storedKey // of reservations
	RLS          *rls.Service
	activity     *activity
	fleet        *fleet.Fleet
	budgetEvents budgetEvents
	stats        rls.FileStats // of envoyproxy/ratelimit
	counters     *rls.Counters // of limitador files
	tracing      *Tracing      // nil = off
	InForce      atomic.Pointer[admin.InForce]
	waiting      atomic.Pointer[yamlcfg.Problems] // settings of the files that take effect at the next start; nil = none
	health       admin.Health
	metrics      *serviceMetrics

	grpc         grpcSide
	http         httpSide
	admin        adminSide
	figures      metricsSide
	debug        httpSide
	statsd       *statsd
	guards       guards
	control      controlPlane
	mirror       *mirror
	certificates certificates
	traffic      bool          // the demo makes traffic
	check        string        // the command that shows the mistakes of newer files
	quiet        time.Duration // how long each side may take to end its last answers
}

const (
	// storeTime bounds the end of a store. With the last calls of a webhook, half a second, a stop takes
	// less than 5 s where nothing else is slow.
	storeTime = 4 * time.Second
	// traceTime bounds the sending of the last spans.
	traceTime = time.Second
)

// Handler answers HTTP requests of the service, without its listener.
func (s *Service) Handler() http.Handler { return s.http.server.Handler }

func (s *Service) explainer() *admin.Explainer {
	shards, _ := s.Store.(admin.Sharder)
	return &admin.Explainer{InForce: s.InForce.Load, Decider: s.limiter, Now: s.Clocks.Call, Shards: shards, Estimates: s.RLS.Estimates()}
}

// Close frees everything that newService made, also the parts made before it failed.
// No call is answered any more.
func (s *Service) Close(ctx context.Context) {
	if s.grpc.server != nil {
		s.grpc.server.Stop()
	}
	s.control.close()
	_ = s.mirror.close() // nobody waits for its answers
	if s.ledger != nil { // it books the pending charges, as far as the store answers
		end(ctx, s.log, "ledger", s.quiet, s.ledger.Close)
	}
	if s.limiter != nil {
		s.limiter.Close()
	}
	end(ctx, s.log, "store", min(s.quiet, storeTime), s.fallback.Close)
	if s.Store != nil { // else it could not be opened
		end(ctx, s.log, "store", min(s.quiet, storeTime), s.Store.Close)
		s.alerts.finish(ctx) // of usage that the store wrote last
	}
	ctx, stop := context.WithTimeout(ctx, traceTime)
	defer stop()
	if err := s.tracing.Close(ctx); err != nil {
		s.log.WarnContext(ctx, "the last spans were not sent", "error", err)
	}
}

// end ends a part of the service. Each has a time of its own: one that is slow takes nothing from the next.
func end(ctx context.Context, log *slog.Logger, part string, within time.Duration, end func(context.Context) error) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	if err := end(ctx); err != nil {
		log.ErrorContext(ctx, "a part of the service was not closed in order", "part", part, "error", err)
	}
}
