package envoygateway_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// goldens are where Envoy Gateway's module has the routes that it makes of global limits.
var goldens = []string{"ratelimit.routes.yaml", "ratelimit-sourceip.routes.yaml"}

// Each action of the examples, and each number of hits, has the form of one that the release of
// Envoy Gateway makes.
func TestShapes(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/envoyproxy/gateway").Output()
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]bool)
	for _, name := range goldens {
		var configs []json.RawMessage
		readYAML(t, filepath.Join(strings.TrimSpace(string(dir)), "internal/xds/translator/testdata/out/xds-ir", name), &configs)
		for _, text := range configs {
			config := new(route.RouteConfiguration)
			err = protojson.Unmarshal(text, config)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(made, forms(t, config))
		}
	}
	for _, name := range []string{"shape-envoy-gateway.yaml", "shape-ai-gateway.yaml"} {
		shown := forms(t, exampleRoutes(t, filepath.Join("..", "..", "examples", "envoy", name)))
		if len(shown) == 0 {
			t.Errorf("%s has no limits", name)
		}
		for form := range shown {
			if !made[form] {
				t.Errorf("%s: Envoy Gateway makes nothing of the form\n%s, but\n%s", name, form, strings.Join(slices.Sorted(maps.Keys(made)), "\n"))
			}
		}
	}
}

// exampleRoutes returns the routes of an Envoy file.
func exampleRoutes(t *testing.T, file string) *route.RouteConfiguration {
	t.Helper()
	var object any
	readYAML(t, file, &object)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	config, manager := new(bootstrapv3.Bootstrap), new(hcm.HttpConnectionManager)
	err = protojson.Unmarshal(text, config)
	if err != nil {
		t.Fatal(err)
	}
	err = config.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager)
	if err != nil {
		t.Fatal(err)
	}
	return manager.GetRouteConfig()
}

// names are the parts that differ from one policy to the other.
var names = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`rule-\d+-match-\d+`), "rule-N-match-N"},
	{regexp.MustCompile(`rule-\d+-match--1`), "rule-N-match--1"},
	{regexp.MustCompile(`"domain":"[^"]+/[^"]+"|"domain":"first-listener"`), `"domain":"LISTENER"`},
	{regexp.MustCompile(`"headerName":"[^"]+"`), `"headerName":"HEADER"`},
	{regexp.MustCompile(`"name":"[^"]+","stringMatch":\{"exact":"[^"]+"\}`), `"name":"HEADER","stringMatch":{"exact":"VALUE"}`},
	{regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`), "ADDRESS"},
	{regexp.MustCompile(`"prefixLen":\d+|ADDRESS/\d+`), "PREFIX"},
	{regexp.MustCompile(`%DYNAMIC_METADATA\([^)]+\)%`), "METADATA"},
	{regexp.MustCompile(`"number":"\d+"`), `"number":"NUMBER"`},
}

// forms returns the parts of the limits of routes, those of Envoy Gateway's own filter, without the
// names that a policy chooses.
func forms(t *testing.T, config *route.RouteConfiguration) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	for _, host := range config.GetVirtualHosts() {
		for _, r := range host.GetRoutes() {
			for _, part := range parts(t, r) {
				form := strings.ReplaceAll(canonical(t, part), `"`+r.GetName()+`"`, `"ROUTE"`)
				for _, n := range names {
					form = n.pattern.ReplaceAllString(form, n.replacement)
				}
				all[form] = true
			}
		}
	}
	return all
}

// parts returns the actions of a route, its limits without them, and whether it names a domain.
func parts(t *testing.T, r *route.Route) []proto.Message {
	t.Helper()
	filter := r.GetTypedPerFilterConfig()["envoy.filters.http.ratelimit"]
	if filter == nil {
		return nil
	}
	limits := new(ratelimit.RateLimitPerRoute)
	err := filter.UnmarshalTo(limits)
	if err != nil {
		t.Fatal(err)
	}
	var all []proto.Message
	for _, limit := range limits.GetRateLimits() {
		for _, action := range limit.GetActions() {
			all = append(all, action)
		}
		limit.Actions, limit.Limit = nil, nil
		all = append(all, limit)
	}
	return append(all, &ratelimit.RateLimitPerRoute{Domain: cmp.Or(limits.GetDomain(), "none")})
}

// canonical returns a message as JSON without spaces and in one order.
func canonical(t *testing.T, message proto.Message) string {
	t.Helper()
	text, err := protojson.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var object any
	err = yaml.Unmarshal(text, &object)
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
