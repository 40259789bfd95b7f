// Package xdstest is a control plane for tests of rules that come over ADS: the server of go-control-plane, as Envoy
// Gateway and Envoy AI Gateway have it.
package xdstest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
)

// Plane is a control plane.
type Plane struct {
	Address string

	t      *testing.T
	cache  cachev3.SnapshotCache
	server *grpc.Server

	mu      sync.Mutex
	refused []string // the reasons, in order
	asked   []*discoveryv3.DiscoveryRequest
}

// Node is the id of the client that has rules.
const Node = "envoy-ratelimit"

// New returns a control plane that is not started.
func New(t *testing.T) *Plane {
	t.Helper()
	return &Plane{t: t}
}

// Start starts the control plane at an address; port 0 is a free one.
func (p *Plane) Start(address string, options ...grpc.ServerOption) {
	p.t.Helper()
	p.cache = cachev3.NewSnapshotCache(false, cachev3.IDHash{}, nil)
	var listen net.ListenConfig
	listener, err := listen.Listen(p.t.Context(), "tcp", address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Address = listener.Addr().String()
	p.server = grpc.NewServer(options...)
	callbacks := serverv3.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, r)
		if r.GetErrorDetail() != nil {
			p.refused = append(p.refused, r.GetErrorDetail().GetMessage())
		}
		return nil
	}}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.server, serverv3.NewServer(context.WithoutCancel(p.t.Context()), p.cache, callbacks))
	server := p.server
	go func() { _ = server.Serve(listener) }() // it ends with the server
	p.t.Cleanup(server.Stop)
}

// Set hands out rules as a version.
func (p *Plane) Set(version string, rules ...*ratelimitv3.RateLimitConfig) {
	p.t.Helper()
	resources := make([]types.Resource, len(rules))
	for i := range rules {
		resources[i] = rules[i]
	}
	snapshot, err := cachev3.NewSnapshot(version, map[string][]types.Resource{resourcev3.RateLimitConfigType: resources})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cache.SetSnapshot(p.t.Context(), Node, snapshot); err != nil {
		p.t.Fatal(err)
	}
}

// Refusals returns the reasons for which answers were refused, in order.
func (p *Plane) Refusals() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// Asked returns the requests, in order.
func (p *Plane) Asked() []*discoveryv3.DiscoveryRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Stop ends the control plane, which can start again.
func (p *Plane) Stop() { p.server.Stop() }

// RulesOf returns a resource with a limit of 5 for each user.
func RulesOf(domain string, unit ratelimitv3.RateLimitUnit) *ratelimitv3.RateLimitConfig {
	return &ratelimitv3.RateLimitConfig{Name: domain + "-rules", Domain: domain, Descriptors: []*ratelimitv3.RateLimitDescriptor{
		{Key: "user", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: unit, RequestsPerUnit: 5}},
	}}
}
