package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server/guard"
)

// Bounds of the gRPC listener beside those of the configuration.
const (
	// maxStreams is the most calls on one connection. Envoy opens another beyond it.
	maxStreams = 1024
	// handshakeTimeout is how long a new connection may take until it can carry calls.
	handshakeTimeout = 10 * time.Second
	// ageGrace is how long a connection that is too old may go on with its calls.
	ageGrace = 30 * time.Second
	// pingEvery is how often a peer may ping, also without a call: Envoy does every 30 s.
	pingEvery = 5 * time.Second
	// silentAfter and pingTimeout are when a silent peer is pinged, and has gone.
	silentAfter = time.Minute
	pingTimeout = 20 * time.Second
	// maxCallHeaders is the most bytes of headers of a call, with 32 for each.
	maxCallHeaders = 64 << 10
)

// Bounds of the HTTP listener.
const (
	HTTPReadTimeout  = 10 * time.Second
	httpWriteTimeout = time.Minute // longer than a profile takes
	httpMaxHeader    = 32 << 10
)

// Parts of the memory that the process may use, and their users.
const (
	connectionShare  = 8 // connections for gRPC
	connectionBytes  = 64 << 10
	streamShare      = 3 // streams
	streamBytes      = 14 << 10
	httpShare        = 16 // connections for HTTP, and for administration
	httpBytes        = 64 << 10
	leastHTTP        = 64
	pendingShare     = 8 // messages that are not whole
	leastStreams     = 1024
	leastPending     = 40 << 20 // half of it is room for the largest message
	mostPending      = 256 << 20
	leastConnections = 256
)

// guards bound the connections of the listeners that unknown clients can reach.
type guards struct {
	grpc, http *guard.Guard
	admin      int // connections there may be for administration
}

// newGuards returns the guards of a configuration. Their counts are registered.
func newGuards(cfg *config.Config, log *slog.Logger, reg prometheus.Registerer) (g guards, err error) {
	memory := memoryLimit()
	wanted := cfg.Server.GRPC.MaxConnections
	if wanted == 0 {
		wanted = connectionsIn(memory)
	}
	shares := guard.Share(guard.Descriptors(), wanted)
	if shares.GRPC < max(cfg.Server.GRPC.MaxConnections, min(wanted, leastConnections)) {
		log.Warn("there are too few file descriptors: raise ulimit -n", "wanted", wanted, "connections", shares.GRPC)
	}
	g.grpc = guard.New(guard.Config{
		Name: "grpc", MaxConnections: shares.GRPC, Logger: log,
		MaxStreams: max(memory/streamShare/streamBytes, leastStreams),
		MaxPending: min(max(memory/pendingShare, leastPending), mostPending),
	})
	httpMost := int(min(max(memory/httpShare/httpBytes, leastHTTP), guard.MaxHTTP)) // #nosec G115 -- at most MaxHTTP
	g.admin = min(shares.Admin, httpMost)
	g.http = guard.New(guard.Config{Name: "http", MaxConnections: min(shares.HTTP, httpMost), MaxPending: -1, Logger: log})
	return g, errors.Join(registerGuard(reg, "grpc", g.grpc), registerGuard(reg, "http", g.http), registerStreams(reg, g.grpc))
}

// connectionsIn returns how many connections there may be in that many bytes of
// memory.
func connectionsIn(memory int64) int {
	return int(min(max(memory/connectionShare/connectionBytes, leastConnections), config.MostConnections))
}

// run watches until ctx ends.
func (g *guards) run(ctx context.Context) error {
	g.grpc.Run(ctx)
	return nil
}

// boundOptions are the bounds of one connection for gRPC.
func boundOptions(maxAge time.Duration) []grpc.ServerOption {
	params := keepalive.ServerParameters{Time: silentAfter, Timeout: pingTimeout}
	if maxAge > 0 {
		params.MaxConnectionAge, params.MaxConnectionAgeGrace = maxAge, ageGrace
	}
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxHeaderListSize(maxCallHeaders),
		grpc.KeepaliveParams(params),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingEvery, PermitWithoutStream: true}),
	}
}

// registerGuard registers the counts of a guard.
func registerGuard(reg prometheus.Registerer, listener string, g *guard.Guard) error {
	labels := prometheus.Labels{"listener": listener}
	errs := []error{reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ratelimit_connections", Help: "Connections of a listener.", ConstLabels: labels,
	}, func() float64 { return float64(g.Connections()) }))}
	errs = append(errs, reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ratelimit_max_connections", Help: "Bound of the connections of a listener.", ConstLabels: labels,
	}, func() float64 { return float64(g.MaxConnections()) })))
	for r := range guard.Reasons {
		errs = append(errs, reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_connections_closed_total", Help: "Connections closed because they, or all together, asked for too much.",
			ConstLabels: prometheus.Labels{"listener": listener, "reason": r.String()},
		}, func() float64 { return float64(g.Closed(r)) })))
	}
	return errors.Join(errs...)
}

// registerStreams registers the counts of the streams of gRPC.
func registerStreams(reg prometheus.Registerer, g *guard.Guard) error {
	return errors.Join(
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_streams", Help: "Streams of gRPC, or their handlers if these are more.",
		}, func() float64 { return float64(g.Streams()) })),
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_max_streams", Help: "Bound of the streams of gRPC.",
		}, func() float64 { return float64(g.MaxStreams()) })),
		reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_streams_held_total", Help: "Streams of gRPC held back: no message yet, and no room.",
		}, func() float64 { return float64(g.Held()) })),
	)
}
