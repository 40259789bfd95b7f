package envoygateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// gatewayName is the listener, and the configuration of its routes.
const gatewayName = "default/eg/http"

// translated is where Envoy Gateway's module has the configuration of a Gateway default/eg with
// a listener http and an HTTPRoute for www.example.com.
const translated = "internal/cmd/egctl/testdata/translate/out/from-gateway-api-to-xds."

// readGateway returns the resources of the Gateway without patches.
func readGateway(t *testing.T) resources {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/envoyproxy/gateway").Output()
	if err != nil {
		t.Fatal(err)
	}
	var listeners struct {
		XDS map[string]struct {
			Dynamic []struct {
				State struct {
					Listener json.RawMessage `json:"listener"`
				} `json:"activeState"`
			} `json:"dynamicListeners"`
		} `json:"xds"`
	}
	var routes struct {
		XDS map[string]struct {
			Dynamic []struct {
				Config json.RawMessage `json:"routeConfig"`
			} `json:"dynamicRouteConfigs"`
		} `json:"xds"`
	}
	base := filepath.Join(strings.TrimSpace(string(dir)), filepath.FromSlash(translated))
	readYAML(t, base+"listener.yaml", &listeners)
	readYAML(t, base+"route.yaml", &routes)
	all := make(resources)
	for _, l := range listeners.XDS["default/eg"].Dynamic {
		if strings.Contains(string(l.State.Listener), `"name":"`+gatewayName+`"`) {
			all.add(t, egv1a1.ListenerEnvoyResourceType, l.State.Listener, new(listener.Listener))
		}
	}
	for _, r := range routes.XDS["default/eg"].Dynamic {
		all.add(t, egv1a1.RouteConfigurationEnvoyResourceType, r.Config, new(route.RouteConfiguration))
	}
	if all[key(egv1a1.ListenerEnvoyResourceType, gatewayName)] == nil || all[key(egv1a1.RouteConfigurationEnvoyResourceType, gatewayName)] == nil {
		t.Fatalf("%s*.yaml have no listener and routes %s", base, gatewayName)
	}
	return all
}

// named is a resource with its name.
type named interface {
	proto.Message
	GetName() string
}

// add decodes a resource of a configuration dump, which names its type besides.
func (r resources) add(t *testing.T, kind egv1a1.EnvoyResourceType, text []byte, resource named) {
	t.Helper()
	var fields map[string]json.RawMessage
	err := json.Unmarshal(text, &fields)
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "@type")
	text, err = json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	err = protojson.Unmarshal(text, resource)
	if err != nil {
		t.Fatal(err)
	}
	r[key(kind, resource.GetName())] = resource
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = yaml.Unmarshal(text, into)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// write writes the configuration of an Envoy with these resources, which asks no control plane:
// the listener has its routes, and every route leads to an upstream on this machine.
func (r resources) write(t *testing.T) string {
	t.Helper()
	l := proto.CloneOf(r[key(egv1a1.ListenerEnvoyResourceType, gatewayName)].(*listener.Listener))
	manager, filter := new(hcm.HttpConnectionManager), l.GetDefaultFilterChain().GetFilters()[0]
	err := filter.GetTypedConfig().UnmarshalTo(manager)
	if err != nil {
		t.Fatal(err)
	}
	routes := r[key(egv1a1.RouteConfigurationEnvoyResourceType, gatewayName)].(*route.RouteConfiguration)
	manager.RouteSpecifier = &hcm.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	err = filter.GetTypedConfig().MarshalFrom(manager)
	if err != nil {
		t.Fatal(err)
	}
	upstream := routes.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetCluster()
	limiter := proto.CloneOf(r[key(egv1a1.ClusterEnvoyResourceType, "ratelimit")].(*cluster.Cluster))
	limiter.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().Address = "127.0.0.1"
	text := fmt.Sprintf(bootstrap, inline(t, l), inline(t, limiter), upstream, upstream)
	var object any
	err = yaml.Unmarshal([]byte(text), &object)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := yaml.Marshal(object) // each port on a line of its own
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	err = os.WriteFile(path, []byte(strings.ReplaceAll(string(lines), "port_value: 10080", "port_value: 10000")), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bootstrap has places for the listener, the cluster of the service and the name of the upstream.
const bootstrap = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  listeners: [%s]
  clusters:
  - %s
  - name: %q
    type: STATIC
    connect_timeout: 1s
    load_assignment:
      cluster_name: %q
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9000}}}}]}]
`

// inline returns a message as JSON, which is YAML.
func inline(t *testing.T, message proto.Message) string {
	t.Helper()
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
