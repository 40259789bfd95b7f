package chart_test

import (
	"strings"
	"testing"
)

// A mistake in the values is refused, with its place and a remedy.
func TestRefusals(t *testing.T) {
	const hush = "hush"
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
		{"memory", "store.type", "redis", "at '/store/type': value must be one of 'embedded', 'dynamodb', 'valkey'"},
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
		{"fleet-valkey", "store.valkey.table", "{a}", "at '/store/valkey/table'"},
		{"fleet-valkey", "store.valkey.database", 1024, "at '/store/valkey/database': maximum"},
		{"fleet-valkey", "store.valkey.onLoss", "ignore", "at '/store/valkey/onLoss': value must be one of 'refuse', 'recreate'"},
		{"fleet-valkey", "store.valkey.password", hush, "additional properties 'password' not allowed"},
		{"fleet-valkey", "store.valkey.passwordSecret", hush, "at '/store/valkey/passwordSecret': got string, want object"},
		{"fleet-valkey", "store.valkey.tls.secretName", "A B", "at '/store/valkey/tls/secretName'"},
		{"memory", "secretMounts", []any{values{"secretName": "x", "mountPath": "/valkey/server"}}, "at '/secretMounts/0/mountPath'"},
		// values without a default
		{"memory", "store.type", "valkey", "store.valkey.addresses: is missing"},
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
		{"fleet-valkey", "persistence.enabled", true, "persistence.enabled: the store valkey keeps nothing on a volume"},
		{"fleet-valkey", "aggregator.enabled", true, "aggregator.archive: is missing, and with the store valkey there is nothing else to do"},
		{"fleet-valkey", "aggregator", values{"enabled": true, "archive": "s3://audit-events/audit", "keep": values{"hour": "720h"}}, "aggregator.keep: is of usage, which the server of the store valkey counts by itself"},
		// a Valkey or Redis server
		{"fleet-valkey", "store.valkey.addresses", []any{"a:6379", "redis://:" + hush + "@b:6379"}, "store.valkey.addresses[1]: must be a host and a port"},
		{"fleet-valkey", "store.valkey.addresses", []any{hush}, "store.valkey.addresses[0]: must be a host and a port"},
		{"fleet-valkey", "store.valkey.addresses", []any{"a:0"}, "store.valkey.addresses[0]: must be a host and a port"},
		{"fleet-valkey", "store.valkey.addresses", []any{"a:65536"}, "store.valkey.addresses[0]: must be a host and a port"},
		{"fleet-valkey", "store.valkey.passwordSecret.name", "A " + hush, "store.valkey.passwordSecret.name: must be the name of a Secret"},
		{"fleet-valkey", "store.valkey.passwordSecret.key", hush + "/", "store.valkey.passwordSecret.key: must be a key of the Secret"},
		{"fleet-valkey-full", "store.valkey.sentinelPasswordSecret.name", "A " + hush, "store.valkey.sentinelPasswordSecret.name: must be the name of a Secret"},
		{"fleet-valkey", "store.type", "dynamodb", "store.valkey.addresses: the store is dynamodb, and would not use the server"},
		{"fleet-valkey", "store.valkey.sentinelUsername", "u", "store.valkey.sentinelUsername: is of sentinels, and needs store.valkey.master"},
		{"fleet-valkey-full", "store.valkey.master", "", "store.valkey.sentinelPasswordSecret: is of sentinels, and needs store.valkey.master"},
		{"fleet-valkey-full", "store.valkey.tls.enabled", false, "store.valkey.tls.clientCertificate: needs store.valkey.tls.enabled"},
		{"fleet-valkey-full", "store.valkey.tls.secretName", "", "store.valkey.tls.clientCertificate: needs store.valkey.tls.secretName"},
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
		{"memory", "config.server.admin.tls", values{}, "config.server.admin.tls: set admin.tls.secretName instead"},
		{"memory", "admin.tls.secretName", "admin", "admin.tls.secretName: callers on TCP need a credential"},
		{"memory", "admin", values{"enabled": false, "tls": values{"secretName": "admin", "clientCA": true}}, "admin.tls.secretName: needs admin.enabled: true"},
		{"fleet-valkey-full", "admin.tls.clientCA", false, "config.server.admin.proxy: needs admin.tls.secretName, and admin.tls.clientCA: true"},
		{"memory", "config.server.admin.proxy", values{"certificate": "a"}, "config.server.admin.proxy: needs admin.tls.secretName"},
		{"memory", "admin.tls.clientCA", true, "admin.tls.clientCA: needs admin.tls.secretName"},
		{"durable", "networkPolicy.operators", []any{values{}}, "networkPolicy.operators: administration is not on the network"},
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
		if err != nil && strings.Contains(err.Error(), hush) {
			t.Errorf("%s with %s: %v repeats a secret", test.mode, test.path, err)
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
