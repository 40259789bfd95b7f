package istio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"gopkg.in/yaml.v3"
	networking "istio.io/api/networking/v1alpha3"
)

// router is the name of the filter that patches go before.
const router = "envoy.filters.http.router"

// gateway is an ingress gateway that patches are applied to, as Istio would.
type gateway struct {
	config   *bootstrap.Bootstrap
	http     *hcm.HttpConnectionManager
	clusters []*cluster.Cluster
}

// readGateway reads testdata/gateway.yaml, a gateway without patches.
func readGateway() (*gateway, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "gateway.yaml"))
	if err != nil {
		return nil, err
	}
	g := &gateway{config: new(bootstrap.Bootstrap), http: new(hcm.HttpConnectionManager)}
	if err := fromYAML(text, g.config); err != nil {
		return nil, err
	}
	return g, g.manager().UnmarshalTo(g.http)
}

// manager returns where the configuration has its connection manager.
func (g *gateway) manager() *anypb.Any {
	return g.config.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig()
}

// apply applies a patch. It fails for one that would change nothing.
func (g *gateway) apply(p patch) error {
	if got := p.GetMatch().GetContext(); got != networking.EnvoyFilter_GATEWAY {
		return fmt.Errorf("match.context: got %v, want GATEWAY", got)
	}
	switch value := p.value.(type) {
	case *hcm.HttpFilter:
		return g.insert(p, value)
	case *cluster.Cluster:
		if got := p.GetPatch().GetOperation(); got != networking.EnvoyFilter_Patch_ADD {
			return fmt.Errorf("operation on clusters: got %v, want ADD", got)
		}
		g.clusters = append(g.clusters, value)
		return nil
	case *route.VirtualHost:
		return g.mergeHost(p, func(host *route.VirtualHost) bool {
			proto.Merge(host, value)
			return true
		})
	case *route.Route:
		return g.mergeHost(p, func(host *route.VirtualHost) bool {
			name := p.GetMatch().GetRouteConfiguration().GetVhost().GetRoute().GetName()
			i := slices.IndexFunc(host.GetRoutes(), func(r *route.Route) bool { return r.GetName() == name })
			if i < 0 {
				return false
			}
			proto.Merge(host.GetRoutes()[i], value)
			return true
		})
	default:
		return fmt.Errorf("a patch of %T", value)
	}
}

// insert puts a filter directly before the router.
func (g *gateway) insert(p patch, filter *hcm.HttpFilter) error {
	match := p.GetMatch().GetListener().GetFilterChain().GetFilter()
	if match.GetName() != "envoy.filters.network.http_connection_manager" || match.GetSubFilter().GetName() != router ||
		p.GetPatch().GetOperation() != networking.EnvoyFilter_Patch_INSERT_BEFORE {
		return fmt.Errorf("a filter at %v, %v, want it before the router", match, p.GetPatch().GetOperation())
	}
	last := len(g.http.GetHttpFilters()) - 1
	if last < 0 || g.http.GetHttpFilters()[last].GetName() != router {
		return fmt.Errorf("the gateway's last filter is not %s", router)
	}
	g.http.HttpFilters = slices.Insert(g.http.GetHttpFilters(), last, filter)
	return nil
}

// mergeHost merges into the virtual host that a patch names.
func (g *gateway) mergeHost(p patch, merge func(*route.VirtualHost) bool) error {
	if got := p.GetPatch().GetOperation(); got != networking.EnvoyFilter_Patch_MERGE {
		return fmt.Errorf("operation on routes: got %v, want MERGE", got)
	}
	match := p.GetMatch().GetRouteConfiguration().GetVhost()
	for _, host := range g.http.GetRouteConfig().GetVirtualHosts() {
		if host.GetName() == match.GetName() && merge(host) {
			return nil
		}
	}
	return fmt.Errorf("the gateway has no such virtual host or route: %v", match)
}

// write writes the configuration of an Envoy that is this gateway; every address is
// on this machine, and keeps its port.
func (g *gateway) write(t *testing.T) string {
	t.Helper()
	if err := g.manager().MarshalFrom(g.http); err != nil {
		t.Fatal(err)
	}
	for _, c := range g.clusters {
		for _, locality := range c.GetLoadAssignment().GetEndpoints() {
			for _, endpoint := range locality.GetLbEndpoints() {
				endpoint.GetEndpoint().GetAddress().GetSocketAddress().Address = "127.0.0.1"
			}
		}
	}
	resources := g.config.GetStaticResources()
	resources.Clusters = append(resources.Clusters, g.clusters...)
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(g.config)
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := yaml.Unmarshal(text, &object); err != nil { // JSON is YAML
		t.Fatal(err)
	}
	if text, err = yaml.Marshal(object); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
