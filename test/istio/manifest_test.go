package istio_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"gopkg.in/yaml.v3"
	networking "istio.io/api/networking/v1alpha3"
)

// manifest is an EnvoyFilter as Kubernetes has it.
type manifest struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// patch is one patch of a manifest, with the value that it adds or merges.
type patch struct {
	*networking.EnvoyFilter_EnvoyConfigObjectPatch
	value proto.Message
}

// decode returns the patches of a file's manifests, in order. It refuses every field
// that Istio or Envoy do not have.
func decode(text []byte) ([]patch, error) {
	var patches []patch
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return patches, nil
		}
		if err != nil {
			return nil, err
		}
		more, err := decodeManifest(document)
		if err != nil {
			return nil, err
		}
		patches = append(patches, more...)
	}
}

func decodeManifest(document map[string]any) ([]patch, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	var m manifest
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&m); err != nil {
		return nil, err
	}
	if m.APIVersion != "networking.istio.io/v1alpha3" || m.Kind != "EnvoyFilter" || m.Metadata.Name == "" {
		return nil, fmt.Errorf("got %s %s %q, want an EnvoyFilter with a name", m.APIVersion, m.Kind, m.Metadata.Name)
	}
	spec := new(networking.EnvoyFilter)
	if err := protojson.Unmarshal(m.Spec, spec); err != nil {
		return nil, fmt.Errorf("%s: spec: %w", m.Metadata.Name, err)
	}
	var patches []patch
	for i, p := range spec.GetConfigPatches() {
		value, err := decodeValue(p)
		if err != nil {
			return nil, fmt.Errorf("%s: configPatches[%d]: %w", m.Metadata.Name, i, err)
		}
		patches = append(patches, patch{p, value})
	}
	return patches, nil
}

// decodeValue decodes the value of a patch as the type that it is applied to.
func decodeValue(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) (proto.Message, error) {
	var value proto.Message
	switch p.GetApplyTo() { //nolint:exhaustive // the others are refused
	case networking.EnvoyFilter_HTTP_FILTER:
		value = new(hcm.HttpFilter)
	case networking.EnvoyFilter_CLUSTER:
		value = new(cluster.Cluster)
	case networking.EnvoyFilter_VIRTUAL_HOST:
		value = new(route.VirtualHost)
	case networking.EnvoyFilter_HTTP_ROUTE:
		value = new(route.Route)
	default:
		return nil, fmt.Errorf("applyTo %v: no manifest needs it", p.GetApplyTo())
	}
	text, err := protojson.Marshal(p.GetPatch().GetValue())
	if err != nil {
		return nil, err
	}
	if err := protojson.Unmarshal(text, value); err != nil {
		return nil, fmt.Errorf("patch.value as %s: %w", value.ProtoReflect().Descriptor().FullName(), err)
	}
	return value, nil
}
