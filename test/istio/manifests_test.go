package istio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

func TestMain(m *testing.M) { os.Exit(envoytest.MainOfGateways(m)) }

// fromYAML decodes a message from YAML, strictly.
func fromYAML(text []byte, message proto.Message) error {
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return err
	}
	asJSON, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(asJSON, message)
}

// manifests is where the manifests are.
var manifests = filepath.Join("..", "..", "examples", "istio")

// rules is the file with the rules for all manifests.
const rules = "ratelimit.yaml"

// readManifest returns the text of a file of examples/istio.
func readManifest(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Istio and Envoy read every manifest, and it fits a gateway with the routes that it
// names.
func TestManifestsApply(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	for _, file := range files {
		if filepath.Base(file) == rules {
			continue
		}
		patchedGateway(t, filepath.Base(file))
		applied++
	}
	if applied < 2 {
		t.Errorf("manifests in examples/istio: got %d, want at least requests.yaml and tokens.yaml", applied)
	}
}

// patchedGateway returns a gateway with the patches of a file.
func patchedGateway(t *testing.T, file string) *gateway {
	t.Helper()
	g, err := readGateway()
	if err != nil {
		t.Fatal(err)
	}
	patches, err := decode(readManifest(t, file))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(patches) == 0 {
		t.Fatalf("%s: has no patches", file)
	}
	for i, p := range patches {
		if err := g.apply(p); err != nil {
			t.Errorf("%s: patch %d: %v", file, i, err)
		}
	}
	return g
}

// A field that Istio or Envoy do not have is refused at any place.
func TestStrict(t *testing.T) {
	text := string(readManifest(t, "requests.yaml"))
	for name, change := range map[string][2]string{
		"manifest":        {"kind: EnvoyFilter", "kind: EnvoyFilter\nstatus: {}"},
		"kind":            {"kind: EnvoyFilter", "kind: EnvoyFilters"},
		"spec":            {"workloadSelector:", "workloadSelectors:"},
		"match":           {"subFilter:", "subfilter:"},
		"enumeration":     {"INSERT_BEFORE", "INSERT_INFRONT"},
		"filter":          {"typed_config:", "typed_configuration:"},
		"filter's config": {"failure_mode_deny:", "failure_mode_denied:"},
		"type of config":  {"ratelimit.v3.RateLimit\n", "ratelimit.v3.RateLimits\n"},
		"cluster":         {"connect_timeout:", "connection_timeout:"},
		"host":            {"typed_per_filter_config:", "typed_per_filter_configs:"},
		"route's config":  {"descriptor_value: search", "descriptor_values: search"},
		"duration":        {"timeout: 0.25s", "timeout: 250ms"},
	} {
		altered := strings.Replace(text, change[0], change[1], 1)
		if altered == text {
			t.Fatalf("%s: the manifest has no %q", name, change[0])
		}
		if _, err := decode([]byte(altered)); err == nil {
			t.Errorf("%s: %q in place of %q is not refused", name, change[1], change[0])
		}
	}
}

// A patch that finds no place is an error, as is one in the wrong order.
func TestApplyFindsNoPlace(t *testing.T) {
	text := string(readManifest(t, "requests.yaml"))
	for _, change := range [][2]string{
		{`name: "api.example.com:443"`, `name: "other.example.com:443"`},
		{"route: {name: search}", "route: {name: other}"},
		{"operation: MERGE", "operation: REPLACE"},
		{"context: GATEWAY", "context: SIDECAR_INBOUND"},
	} {
		patches, err := decode([]byte(strings.ReplaceAll(text, change[0], change[1])))
		if err != nil {
			t.Fatal(err)
		}
		g, err := readGateway()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(patches, func(p patch) bool { return g.apply(p) != nil }) {
			t.Errorf("%q in place of %q: no patch fails", change[1], change[0])
		}
	}
}

// start starts an Envoy with the patches of a file, in front of the service with the
// rules of the folder and an upstream.
func start(t *testing.T, file string) (*envoytest.Envoy, *envoytest.Service) {
	t.Helper()
	service := envoytest.StartService(t, envoytest.WithoutRefill(t, filepath.Join(manifests, rules)), "", "")
	upstream := envoytest.StartUpstream(t)
	envoy := envoytest.StartEnvoy(t, patchedGateway(t, file).write(t), envoytest.Ports{8081: {service.GRPC}, 9000: {upstream.Address}})
	return envoy, service
}

// Requests of a key are limited at the host, and searches of all keys besides.
func TestRequests(t *testing.T) {
	envoytest.Need(t)
	envoy, service := start(t, "requests.yaml")
	header := http.Header{"Host": {"api.example.com"}, "X-Api-Key": {"alice"}}
	left := func(entry envoytest.Entry) string {
		t.Helper()
		got, err := service.Available("istio-requests", "requests", entry)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	wantLeft := func(key, searches string) {
		t.Helper()
		if got := left(envoytest.Entry{Key: "api_key", Value: "alice"}); got != key {
			t.Errorf("left for the key: got %s, want %s", got, key)
		}
		if got := left(envoytest.Entry{Key: "route", Value: "search"}); got != searches {
			t.Errorf("left for searches: got %s, want %s", got, searches)
		}
	}
	wantCode := func(path string, want int) {
		t.Helper()
		if answer := envoy.Get(t, path, header); answer.Code != want {
			t.Errorf("%s: got %d, want %d", path, answer.Code, want)
		}
	}
	wantCode("/users", http.StatusOK)
	wantLeft("99", "20")
	for range 20 {
		wantCode("/search?q=x", http.StatusOK)
	}
	wantLeft("79", "0")
	wantCode("/search?q=x", http.StatusTooManyRequests)
	wantCode("/users", http.StatusOK)
	wantLeft("78", "0")
}

// Tokens of a key are charged after the answer on one route, and reserved and settled
// on the other.
func TestTokens(t *testing.T) {
	envoytest.Need(t)
	envoy, service := start(t, "tokens.yaml")
	for name, form := range map[string]struct {
		route, meter string
	}{
		"charged": {"chat", "tokens"},
		"settled": {"chat-reserved", "reserve"},
	} {
		t.Run(name, func(t *testing.T) {
			used := func(want int) func() error {
				return func() error {
					got, err := service.Available("istio-tokens", "tpm", envoytest.Entry{Key: "api_key", Value: name}, envoytest.Entry{Key: "meter", Value: form.meter})
					if err == nil && got != strconv.Itoa(100_000-want) {
						err = fmt.Errorf("tokens left: got %s, want %d", got, 100_000-want)
					}
					return err
				}
			}
			for _, question := range []struct {
				body       string
				code, used int
			}{
				{`{"max_tokens": 10000000000}`, http.StatusBadRequest, 0}, // estimated as 100,000; the provider refuses it
				{`{"max_tokens": 500}`, http.StatusOK, 100},
				{`{"max_tokens": 500, "stream": true, "stream_options": {"include_usage": true}}`, http.StatusOK, 200},
			} {
				header := http.Header{"Host": {"llm.example.com"}, "X-Api-Key": {name}, "X-Route": {form.route}, "X-Total-Tokens": {"100"}, "Accept-Encoding": {"gzip"}}
				if got := post(t, envoy, question.body, header); got != question.code {
					t.Errorf("%s: got %d, want %d", question.body, got, question.code)
				}
				envoytest.Await(t, "the tokens used", used(question.used))
			}
			envoytest.Stays(t, "nothing is counted twice", used(200))
		})
	}
}

// post sends a question and returns the code of its answer.
func post(t *testing.T, envoy *envoytest.Envoy, body string, header http.Header) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	response, err := envoy.Post(ctx, "/v1/chat/completions", body, maps.Clone(header))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := envoytest.Read(response)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code
}
