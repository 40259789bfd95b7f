package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server/guard"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// grpcSide is the listener of the Rate Limit Service and its server.
type grpcSide struct {
	server   *grpc.Server // nil = not built
	health   *health.Server
	listener net.Listener

	mu     sync.Mutex
	status grpc_health_v1.HealthCheckResponse_ServingStatus
	empty  bool // no domain is in force, and one is needed
}

// grpcOptions returns the options of a server that is watched. A nil configuration of TLS is plain
// text.
func grpcOptions(cfg config.GRPC, secure *tls.Config, watch *guard.Guard) []grpc.ServerOption {
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	return slices.Concat(rls.ServerOptions(), watch.Options(creds), boundOptions(cfg.MaxConnectionAge))
}

// build makes the server, which is not healthy yet.
func (g *grpcSide) build(opts []grpc.ServerOption, watch *guard.Guard, service *rls.Service) error {
	g.server = grpc.NewServer(opts...)
	watched := watch.Server(g.server)
	g.health = health.NewServer()
	g.setHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	grpc_health_v1.RegisterHealthServer(watched, g.health)
	service.Register(watched)
	return reflect(watched)
}

// fileService is the name under which envoyproxy/ratelimit reports its health.
const fileService = "ratelimit"

func (g *grpcSide) setHealth(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status = status
	g.tellHealth()
}

// setEmpty says whether a domain is needed and none is in force.
func (g *grpcSide) setEmpty(empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty = empty
	g.tellHealth()
}

func (g *grpcSide) tellHealth() {
	for _, name := range []string{"", fileService, rls.ServiceName, rls.KuadrantServiceName} {
		status := g.status
		if name == fileService && g.empty {
			status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
		g.health.SetServingStatus(name, status)
	}
}

// serve answers until the server is stopped.
func (g *grpcSide) serve(watch *guard.Guard) error {
	err := g.server.Serve(watch.Listener(g.listener))
	if errors.Is(err, grpc.ErrServerStopped) { // before it began
		return nil
	}
	return err
}

// stop lets the calls in flight end, for at most a time. Streams that stay open, such as
// those that watch the health, are cut.
func (g *grpcSide) stop(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.server.GracefulStop()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		g.server.Stop()
		<-done
	}
}
