package envoygateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// resources are the parts of a configuration that a policy may patch, by type and name.
type resources map[string]proto.Message

// key returns where resources has a resource.
func key(kind egv1a1.EnvoyResourceType, name string) string { return string(kind) + " " + name }

// newResource returns an empty resource of a type; nil for others.
func newResource(kind egv1a1.EnvoyResourceType) proto.Message {
	switch kind { //nolint:exhaustive // the others are refused
	case egv1a1.ListenerEnvoyResourceType:
		return new(listener.Listener)
	case egv1a1.RouteConfigurationEnvoyResourceType:
		return new(route.RouteConfiguration)
	case egv1a1.ClusterEnvoyResourceType:
		return new(cluster.Cluster)
	default:
		return nil
	}
}

// apply applies the patches of a policy, by the rules of Envoy Gateway: an addition without a
// path is a new resource; others change the nodes of their path, and must find one.
func (r resources) apply(policy *egv1a1.EnvoyPatchPolicy) error {
	for i, p := range policy.Spec.JSONPatches {
		err := r.applyOne(p)
		if err != nil {
			return fmt.Errorf("jsonPatches[%d]: %w", i, err)
		}
	}
	return nil
}

func (r resources) applyOne(p egv1a1.EnvoyJSONPatchConfig) error {
	changed := newResource(p.Type)
	if changed == nil || p.Operation.Op != "add" || p.Operation.Value == nil {
		return fmt.Errorf("%s of a %s: no manifest needs it", p.Operation.Op, p.Type)
	}
	text, at := p.Operation.Value.Raw, key(p.Type, p.Name)
	if p.Operation.JSONPath != nil || p.Operation.Path != nil && *p.Operation.Path != "" {
		found := r[at]
		if found == nil {
			return fmt.Errorf("there is no %s", at)
		}
		var err error
		text, err = edit(found, p.Operation)
		if err != nil {
			return err
		}
	}
	err := protojson.Unmarshal(text, changed)
	if err != nil {
		return err
	}
	r[at] = changed
	return changed.(interface{ ValidateAll() error }).ValidateAll()
}

// edit returns a resource as JSON with an addition at each of its places.
func edit(resource proto.Message, operation egv1a1.JSONPatchOperation) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(resource)
	if err != nil {
		return nil, err
	}
	pointers, err := places(text, operation)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.EnsurePathExistsOnAdd = true
	for _, pointer := range pointers {
		addition, err := json.Marshal([]map[string]any{{"op": "add", "path": pointer, "value": operation.Value}})
		if err != nil {
			return nil, err
		}
		patch, err := jsonpatch.DecodePatch(addition)
		if err != nil {
			return nil, err
		}
		text, err = patch.ApplyWithOptions(text, options)
		if err != nil {
			return nil, fmt.Errorf("at %s: %w", pointer, err)
		}
	}
	return text, nil
}

// places returns the JSON pointers of an operation in a document.
func places(text []byte, operation egv1a1.JSONPatchOperation) ([]string, error) {
	var rest string
	if operation.Path != nil && *operation.Path != "" {
		rest = "/" + strings.TrimPrefix(*operation.Path, "/")
	}
	if operation.JSONPath == nil {
		return []string{rest}, nil
	}
	document, err := oj.Parse(text)
	if err != nil {
		return nil, err
	}
	expression, err := jp.ParseString(*operation.JSONPath)
	if err != nil {
		return nil, err
	}
	var pointers []string
	for _, location := range expression.Locate(document, 0) {
		pointers = append(pointers, pointer(location)+rest)
	}
	if len(pointers) == 0 {
		return nil, errors.New("jsonPath " + *operation.JSONPath + " finds nothing")
	}
	return pointers, nil
}

// pointer returns a location of one place as a JSON pointer.
func pointer(location jp.Expr) string {
	var text strings.Builder
	for _, step := range location {
		switch s := step.(type) {
		case jp.Child:
			text.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(s)))
		case jp.Nth:
			text.WriteString("/" + strconv.Itoa(int(s)))
		}
	}
	return text.String()
}
