package envoygateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/api/v1alpha1/validation"
	"sigs.k8s.io/yaml"

	"github.com/ratelimit/ratelimit/internal/environment"
	"github.com/ratelimit/ratelimit/test/envoytest"
)

// manifests is where the manifests are.
var manifests = filepath.Join("..", "..", "examples", "envoy-gateway")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// patched returns the Gateway with the patches of a policy, which is decoded strictly.
func patched(t *testing.T, text string) (resources, error) {
	t.Helper()
	policy := new(egv1a1.EnvoyPatchPolicy)
	err := yaml.UnmarshalStrict([]byte(text), policy)
	if err != nil {
		return nil, err
	}
	all := readGateway(t)
	return all, all.apply(policy)
}

// The values turn the policy's kind on, in the configuration of Envoy Gateway.
func TestValues(t *testing.T) {
	var values struct {
		Config struct {
			EnvoyGateway egv1a1.EnvoyGatewaySpec `json:"envoyGateway"`
		} `json:"config"`
	}
	err := yaml.UnmarshalStrict([]byte(read(t, "values.yaml")), &values)
	if err != nil {
		t.Fatal(err)
	}
	if apis := values.Config.EnvoyGateway.ExtensionAPIs; apis == nil || !apis.EnableEnvoyPatchPolicy {
		t.Errorf("EnvoyPatchPolicy is off: %+v", apis)
	}
}

// The values have Envoy Gateway start our image, with variables that it honours.
func TestGlobalValues(t *testing.T) {
	var values struct {
		Config struct {
			EnvoyGateway egv1a1.EnvoyGatewaySpec `json:"envoyGateway"`
		} `json:"config"`
	}
	err := yaml.UnmarshalStrict([]byte(read(t, "global.yaml")), &values)
	if err != nil {
		t.Fatal(err)
	}
	gateway := &values.Config.EnvoyGateway
	err = validation.ValidateEnvoyGateway(&egv1a1.EnvoyGateway{EnvoyGatewaySpec: egv1a1.EnvoyGatewaySpec{
		Gateway: egv1a1.DefaultGateway(), Provider: gateway.Provider, RateLimit: gateway.RateLimit,
	}})
	if err != nil {
		t.Error(err)
	}
	honoured, _, _ := environment.Names()
	container := gateway.Provider.Kubernetes.RateLimitDeployment.Container
	for _, v := range container.Env {
		if !slices.Contains(honoured, v.Name) {
			t.Errorf("%s has no effect", v.Name)
		}
	}
	if len(container.Env) == 0 || container.Image == nil {
		t.Errorf("got %+v", container)
	}
}

// The SecurityPolicy asks for the key in the header that the patches read, at the same Gateway.
func TestSecurityPolicy(t *testing.T) {
	security, patches := new(egv1a1.SecurityPolicy), new(egv1a1.EnvoyPatchPolicy)
	for name, policy := range map[string]any{"security.yaml": security, "policy.yaml": patches} {
		err := yaml.UnmarshalStrict([]byte(read(t, name)), policy)
		if err != nil {
			t.Fatal(err)
		}
	}
	targets := security.Spec.TargetRefs
	if len(targets) != 1 || targets[0].LocalPolicyTargetReference != patches.Spec.TargetRef || security.Namespace != patches.Namespace {
		t.Errorf("got %+v in %s, want %+v in %s", targets, security.Namespace, patches.Spec.TargetRef, patches.Namespace)
	}
	keys := security.Spec.APIKeyAuth
	if len(keys.ExtractFrom) != 1 || len(keys.ExtractFrom[0].Headers) != 1 {
		t.Fatalf("keys are read from %+v, want one header", keys.ExtractFrom)
	}
	if header := "header_name: " + keys.ExtractFrom[0].Headers[0] + ","; !strings.Contains(read(t, "policy.yaml"), header) {
		t.Errorf("policy.yaml has no %s", header)
	}
}

// A policy with a mistake is refused, or finds no place for a patch.
func TestMistakes(t *testing.T) {
	text := read(t, "policy.yaml")
	for name, change := range map[string][2]string{
		"field":         {"jsonPatches:", "jsonPatch:"},
		"target":        {"name: eg}", "name: eg, namespace: default}"},
		"listener":      {"name: default/eg/http\n", "name: default/eg/https\n"},
		"host":          {"www_example_com", "www.example.com"},
		"filter":        {"envoy.filters.http.router", "envoy.router"},
		"filter's type": {"failure_mode_deny:", "failure_mode_denied:"},
		"route's type":  {"descriptor_key:", "descriptor_keys:"},
		"cluster":       {"connect_timeout:", "connection_timeout:"},
		"bound":         {"connect_timeout: 0.25s", "connect_timeout: 0s"},
	} {
		altered := strings.Replace(text, change[0], change[1], 1)
		if altered == text {
			t.Fatalf("%s: the policy has no %q", name, change[0])
		}
		_, err := patched(t, altered)
		if err == nil {
			t.Errorf("%s: %q in place of %q is not refused", name, change[1], change[0])
		}
	}
}

// An Envoy with the patches limits each API key at the host.
func TestPolicyLimits(t *testing.T) {
	envoytest.Need(t)
	all, err := patched(t, read(t, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	service := envoytest.StartService(t, envoytest.WithoutRefill(t, filepath.Join(manifests, "ratelimit.yaml")), "", "")
	upstream := envoytest.StartUpstream(t)
	envoy := envoytest.StartEnvoy(t, all.write(t), envoytest.Ports{8081: {service.GRPC}, 9000: {upstream.Address}})
	ask := func(header http.Header, want int) {
		t.Helper()
		header.Set("Host", "www.example.com")
		if answer := envoy.Get(t, "/", header); answer.Code != want {
			t.Errorf("%v: got %d, want %d", header, answer.Code, want)
		}
	}
	for range 100 {
		ask(http.Header{"X-Api-Key": {"alice"}}, http.StatusOK)
	}
	ask(http.Header{"X-Api-Key": {"alice"}}, http.StatusTooManyRequests)
	ask(http.Header{"X-Api-Key": {"bob"}}, http.StatusOK)
	ask(http.Header{}, http.StatusOK) // no descriptor, no call: as the page warns
	left, err := service.Available("envoy-gateway", "requests", envoytest.Entry{Key: "api_key", Value: "bob"})
	if err != nil || left != "99" {
		t.Errorf("left for bob: %s, %v; want 99", left, err)
	}
}
