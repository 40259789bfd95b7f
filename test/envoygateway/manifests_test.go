package envoygateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/api/v1alpha1/validation"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ratelimit/ratelimit/internal/environment"
	"github.com/ratelimit/ratelimit/test/envoytest"
)

// manifests is where the manifests are.
var manifests = filepath.Join("..", "..", "examples", "envoy-gateway")

// read returns the text of a manifest, by its path from manifests.
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

// The manifest of Envoy AI Gateway's service decodes strictly, and has variables that the program honours.
func TestAIGatewayService(t *testing.T) {
	parts := strings.Split(read(t, "../ai-gateway/deployment.yaml"), "\n---\n")
	if len(parts) != 2 {
		t.Fatalf("%d documents", len(parts))
	}
	var deployment appsv1.Deployment
	var service corev1.Service
	if err := errors.Join(yaml.UnmarshalStrict([]byte(parts[0]), &deployment), yaml.UnmarshalStrict([]byte(parts[1]), &service)); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	honoured, _, _ := environment.Names()
	variables := map[string]string{}
	for _, v := range container.Env {
		variables[v.Name] = v.Value
		if !slices.Contains(honoured, v.Name) {
			t.Errorf("%s has no effect", v.Name)
		}
	}
	settings, err := environment.Read(func(name string) (string, bool) { value, ok := variables[name]; return value, ok })
	if err != nil || settings.Rules != "" {
		t.Errorf("rules of files %q, %v", settings.Rules, err)
	}
	if service.Spec.Selector["app"] != deployment.Spec.Template.Labels["app"] || service.Spec.Ports[0].TargetPort.StrVal != container.Ports[0].Name {
		t.Errorf("the Service selects %v, port %v", service.Spec.Selector, service.Spec.Ports)
	}
	var values struct {
		Controller struct {
			Address string `json:"quotaRateLimitServiceAddr"`
		} `json:"controller"`
	}
	err = yaml.UnmarshalStrict([]byte(read(t, "../ai-gateway/values.yaml")), &values)
	if want := fmt.Sprintf("%s.%s:%d", service.Name, service.Namespace, service.Spec.Ports[0].Port); err != nil || values.Controller.Address != want {
		t.Errorf("the gateway calls %s, want %s; %v", values.Controller.Address, want, err)
	}
}

// quotaPolicy has the fields of Envoy AI Gateway's resource that the example uses. Its own types are in no module
// that the registry serves.
type quotaPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		TargetRefs []struct {
			Group, Kind, Name string
		} `json:"targetRefs"`
		PerModelQuotas []struct {
			ModelName string `json:"modelName"`
			Quota     struct {
				Mode           string     `json:"mode"`
				CostExpression string     `json:"costExpression"`
				DefaultBucket  quotaValue `json:"defaultBucket"`
				BucketRules    []struct {
					ShadowMode      bool `json:"shadowMode"`
					ClientSelectors []struct {
						Headers []struct {
							Name, Type, Value string
						} `json:"headers"`
					} `json:"clientSelectors"`
					Quota quotaValue `json:"quota"`
				} `json:"bucketRules"`
			} `json:"quota"`
		} `json:"perModelQuotas"`
	} `json:"spec"`
}

type quotaValue struct {
	Limit    int64  `json:"limit"`
	Duration string `json:"duration"`
}

// The QuotaPolicy decodes strictly, and has the quotas whose tree a real Envoy runs in envoytest.TestAIGatewayShape.
func TestQuotaPolicy(t *testing.T) {
	var policy quotaPolicy
	if err := yaml.UnmarshalStrict([]byte(read(t, "../ai-gateway/quota-policy.yaml")), &policy); err != nil {
		t.Fatal(err)
	}
	shape := read(t, "../envoy/shape-ai-gateway.yaml") + read(t, "../envoy/shape.ratelimit.yaml")
	quota := policy.Spec.PerModelQuotas[0]
	for _, name := range []string{policy.Namespace + "/" + policy.Spec.TargetRefs[0].Name, quota.ModelName} {
		if !strings.Contains(shape, name) {
			t.Errorf("the rules for an Envoy have no %s", name)
		}
	}
	if quota.Quota.Mode != "Exclusive" || quota.Quota.CostExpression == "" {
		t.Errorf("mode %s, costs %q", quota.Quota.Mode, quota.Quota.CostExpression)
	}
	rule := quota.Quota.BucketRules[0]
	for _, v := range []quotaValue{quota.Quota.DefaultBucket, rule.Quota} {
		if want := fmt.Sprintf("{tpm: %d/minute}", v.Limit); v.Duration != "1m" || !strings.Contains(shape, want) {
			t.Errorf("the rules for an Envoy have no %s, or not each %s", want, v.Duration)
		}
	}
	if h := rule.ClientSelectors[0].Headers[0]; !strings.Contains(shape, h.Name+"|"+h.Value) {
		t.Errorf("the rules for an Envoy have no %s|%s", h.Name, h.Value)
	}
}

// The resource of Kuadrant's operator decodes strictly, by the fields of its type that the example uses. That type is in
// no module that the registry serves.
func TestLimitadorResource(t *testing.T) {
	var resource struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec struct {
			Image            string `json:"image"`
			Replicas         int    `json:"replicas"`
			RateLimitHeaders string `json:"rateLimitHeaders"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "../kuadrant/limitador.yaml")), &resource); err != nil {
		t.Fatal(err)
	}
	if s := resource.Spec; resource.Kind != "Limitador" || s.Image == "" || s.Replicas != 1 || s.RateLimitHeaders != "NONE" {
		t.Errorf("%s %+v", resource.Kind, s)
	}
}
