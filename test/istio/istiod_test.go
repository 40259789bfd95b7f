package istio_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"gopkg.in/yaml.v3"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/config/validation/envoyfilter"
)

// generalWarning begins the warning that istiod gives for every EnvoyFilter.
const generalWarning = "EnvoyFilter exposes internal implementation details"

// admit validates a manifest as the webhook of istiod 1.31 does. It returns the warnings that
// are about this manifest.
func admit(text []byte) (warnings []string, err error) {
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(object["spec"])
	if err != nil {
		return nil, err
	}
	spec := new(networking.EnvoyFilter)
	if err := protojson.Unmarshal(asJSON, spec); err != nil {
		return nil, err
	}
	warning, err := envoyfilter.ValidateEnvoyFilter(config.Config{
		Meta: config.Meta{GroupVersionKind: gvk.EnvoyFilter, Name: "ratelimit", Namespace: "istio-system"},
		Spec: spec,
	})
	for _, w := range unjoin(warning) {
		if !strings.HasPrefix(w, generalWarning) {
			warnings = append(warnings, w)
		}
	}
	return warnings, err
}

// multiple is the form in which istiod gives several warnings.
type multiple interface {
	error
	WrappedErrors() []error
}

// unjoin returns the messages of an error that may wrap several.
func unjoin(err error) []string {
	if err == nil {
		return nil
	}
	several, ok := errors.AsType[multiple](err)
	if !ok {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range several.WrappedErrors() {
		all = append(all, e.Error())
	}
	return all
}

// The control plane admits the manifests, without a warning about them.
func TestIstiodAdmits(t *testing.T) {
	for _, name := range []string{"requests.yaml", "tokens.yaml"} {
		warnings, err := admit(readManifest(t, name))
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %q", name, err, warnings)
		}
	}
}

// The control plane's check sees mistakes: without it, TestIstiodAdmits would show nothing.
func TestIstiodRefuses(t *testing.T) {
	text := string(readManifest(t, "requests.yaml"))
	for name, change := range map[string][2]string{
		"object and match": {"applyTo: HTTP_FILTER", "applyTo: CLUSTER"},
		"no operation":     {"operation: INSERT_BEFORE", "operation: INVALID"},
		"unknown type":     {"ratelimit.v3.RateLimit\n", "ratelimit.v3.RateLimits\n"},
		"no selector":      {"labels: {istio: ingressgateway}", "labels: {}"},
		"unknown field":    {"failure_mode_deny:", "failure_mode_denied:"},
	} {
		altered := strings.Replace(text, change[0], change[1], 1)
		if altered == text {
			t.Fatalf("%s: the manifest has no %q", name, change[0])
		}
		warnings, err := admit([]byte(altered))
		if err == nil && len(warnings) == 0 {
			t.Errorf("%s: no error and no warning", name)
		}
	}
}
