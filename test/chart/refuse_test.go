package chart_test

import (
	"strings"
	"testing"
)

// A mistake in the values is refused, with its place and a remedy.
func TestRefusals(t *testing.T) {
	all := modes(t)
	for _, test := range []struct {
		mode, path string
		value      any
		want       string
	}{
		// the schema
		{"memory", "replica", 2, "additional properties 'replica' not allowed"},
		{"memory", "image.name", "x", "additional properties 'name' not allowed"},
		{"memory", "store.typ", "dynamodb", "additional properties 'typ' not allowed"},
		{"memory", "store.type", "redis", "at '/store/type': value must be one of 'embedded', 'dynamodb'"},
		{"memory", "replicas", "two", "at '/replicas': got string, want integer"},
		{"memory", "replicas", -1, "at '/replicas': minimum: got -1, want 0"},
		{"memory", "drainSeconds", "10s", "at '/drainSeconds': got string, want integer"},
		{"memory", "drainSeconds", 7200, "at '/drainSeconds': maximum: got 7,200, want 3,600"},
		{"memory", "image.digest", "sha256:abc", "at '/image/digest'"},
		{"memory", "config", []any{}, "at '/config': got array, want null or string or object"},
		{"memory", "files", values{"../x": ""}, "invalid propertyName '../x'"},
		{"memory", "podLabels", values{"app.kubernetes.io/name": "x"}, "invalid propertyName 'app.kubernetes.io/name'"},
		{"memory", "env", []any{values{"value": "x"}}, "at '/env/0': missing property 'name'"},
		{"memory", "secretMounts", []any{values{"secretName": "x"}}, "missing property 'mountPath'"},
		{"memory", "secretMounts", []any{values{"secretName": "A B", "mountPath": "/x"}}, "at '/secretMounts/0/secretName'"},
		{"memory", "secretMounts", []any{values{"secretName": "x", "mountPath": "/etc/ratelimit/"}}, "at '/secretMounts/0/mountPath'"},
		{"memory", "podLabels", values{"team": "a b"}, "at '/podLabels/team'"},
		{"memory", "resources.limits", values{"cpu": []any{1}}, "at '/resources/limits/cpu': got array"},
		{"durable", "persistence.size", "much", "at '/persistence/size'"},
		{"durable", "persistence.accessMode", "ReadWriteMany", "at '/persistence/accessMode': value must be one of"},
		{"fleet", "store.dynamodb.table", "a b", "at '/store/dynamodb/table'"},
		{"fleet", "serviceAccount.roleArn", "ratelimit", "at '/serviceAccount/roleArn'"},
		{"fleet", "podDisruptionBudget.maxUnavailable", 0, "at '/podDisruptionBudget/maxUnavailable'"},
		{"fleet", "topologySpread.zone", "Always", "at '/topologySpread/zone': value must be one of"},
		// values without a default
		{"memory", "image.repository", "", "image.repository: is missing"},
		{"memory", "image.tag", "", "image.tag: is missing"},
		{"memory", "config", values{}, "config: has no domains"},
		{"memory", "config", "a: [", "config: is no YAML"},
		{"memory", "config.server", "off", "config.server: must be an object"},
		{"memory", "config.store", []any{}, "config.store: must be an object"},
		{"memory", "config.server.admin", "off", "config.server.admin: must be an object"},
		// the embedded store is one pod's own
		{"memory", "replicas", 2, "replicas: is 2, and the store embedded is one pod's own"},
		{"durable", "replicas", 3, "replicas: is 3, and the store embedded is one pod's own"},
		{"memory", "replicas", 0, "replicas: is 0, and the store embedded is one pod's own"},
		{"memory", "autoscaling.enabled", true, "autoscaling.enabled: the store embedded is one pod's own"},
		{"fleet", "persistence.enabled", true, "persistence.enabled: the store dynamodb keeps nothing on a volume"},
		{"fleet-full", "autoscaling.minReplicas", 13, "autoscaling.minReplicas: is more than maxReplicas"},
		// the chart's own settings
		{"memory", "config.drain", "30s", "config.drain: set drainSeconds instead"},
		{"memory", "config.store.type", "dynamodb", "config.store.type: set the values store and persistence instead"},
		{"memory", "config.store.embedded.data", "/data", "config.store.embedded: set the values store and persistence instead"},
		{"memory", "config.server.grpc.address", ":9000", "config.server.grpc.address: leave it out: the port is 8081"},
		{"memory", "config.server.http.address", ":9000", "config.server.http.address: leave it out: the port is 8080"},
		{"memory", "config.server.http.tls", values{}, "config.server.http.tls: leave it out"},
		{"memory", "config.server.grpc.tls", values{}, "config.server.grpc.tls: set tls.secretName instead"},
		{"memory", "config.server.admin.address", "off", "config.server.admin.address: leave it out"},
		{"memory", "files", values{"ratelimit.yaml": ""}, "files: ratelimit.yaml is made of config"},
		// settings that contradict each other
		{"memory", "secretMounts", []any{values{"secretName": "x", "mountPath": "/x"}, values{"secretName": "y", "mountPath": "/x"}}, "secretMounts: has the path /x twice"},
		{"memory", "fullnameOverride", "1st", `the Service would be called "1st"`},
		{"memory", "fullnameOverride", "a.b", `the Service would be called "a.b"`},
		{"memory", "tls.clientCA", true, "tls.clientCA: needs tls.secretName"},
		{"memory", "service.type", "NodePort", "service.type: a headless Service is of type ClusterIP; for NodePort set service.headless: false"},
		{"memory", "networkPolicy.enabled", true, "networkPolicy.gateways: is empty"},
		{"fleet", "serviceAccount.create", false, "serviceAccount.roleArn: annotates the ServiceAccount that the chart makes"},
	} {
		_, _, err := render(load(t), with(all[test.mode], test.path, test.value))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %s %v: got %v, want %q", test.mode, test.path, test.value, err, test.want)
		}
	}
}

// The chart of a release names the image of that release.
func TestImageOfARelease(t *testing.T) {
	released := load(t)
	released.Metadata.AppVersion = "v1.2.3"
	documents, _, err := render(released, with(modes(t)["memory"], "image.tag", ""))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(documents, "\n"); !strings.Contains(text, `image: "registry.example.com/ratelimit:v1.2.3"`) {
		t.Errorf("the image is not of the release:\n%s", text)
	}
}
