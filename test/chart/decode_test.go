package chart_test

import (
	"fmt"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// newObject returns an empty object of a version and kind; nil for others.
func newObject(kind meta.TypeMeta) any {
	switch kind {
	case meta.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}:
		return new(core.ConfigMap)
	case meta.TypeMeta{APIVersion: "v1", Kind: "Service"}:
		return new(core.Service)
	case meta.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}:
		return new(core.ServiceAccount)
	case meta.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}:
		return new(apps.Deployment)
	case meta.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}:
		return new(apps.StatefulSet)
	case meta.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}:
		return new(autoscaling.HorizontalPodAutoscaler)
	case meta.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:
		return new(policy.PodDisruptionBudget)
	case meta.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}:
		return new(networking.NetworkPolicy)
	case meta.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: "ServiceMonitor"}:
		return new(monitoring.ServiceMonitor)
	case meta.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}:
		return new(monitoring.PrometheusRule)
	}
	return nil
}

// decode reads a document into Kubernetes' own type, strictly: an unknown field and one
// that is given twice are errors. The name is kind/name.
func decode(document []byte) (name string, object any, err error) {
	var head struct {
		meta.TypeMeta
		Metadata meta.ObjectMeta `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return "", nil, err
	}
	name = head.Kind + "/" + head.Metadata.Name
	object = newObject(head.TypeMeta)
	if object == nil {
		return name, nil, fmt.Errorf("%s: there is no kind %s in %s", name, head.Kind, head.APIVersion)
	}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return name, nil, fmt.Errorf("%s: %w", name, err)
	}
	return name, object, nil
}

// Fields and kinds that Kubernetes does not have are refused.
func TestDecodeIsStrict(t *testing.T) {
	for name, document := range map[string]string{
		"field":   "apiVersion: v1\nkind: Service\nspec: {port: []}\n",
		"nested":  "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{images: a}]}}}\n",
		"twice":   "apiVersion: v1\nkind: Service\nspec: {}\nspec: {}\n",
		"type":    "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: two}\n",
		"kind":    "apiVersion: v1\nkind: Deployment\n",
		"version": "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\n",
		"monitor": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nspec: {endpoint: []}\n",
	} {
		if _, _, err := decode([]byte(document)); err == nil {
			t.Errorf("%s: is not refused", name)
		}
	}
}
