package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// Each value of a server is in the configuration, and its default is left to the service.
func TestValkeyConfig(t *testing.T) {
	for mode, want := range map[string]string{
		"fleet-valkey": `{"addresses": ["valkey.databases.svc:6379"], "table": "ratelimit", "create": false, "on_loss": "refuse", "durability": "server", "usage": true,
			"password_file": "/valkey/server/password"}`,
		"fleet-valkey-full": `{"addresses": ["sentinel-0.databases.svc:26379", "sentinel-1.databases.svc:26379", "sentinel-2.databases.svc:26380"],
			"master": "limits", "database": 2, "table": "edge", "create": true, "on_loss": "recreate", "durability": "replica", "usage": false,
			"username": "ratelimit", "password_file": "/valkey/server/password", "sentinel_username": "watcher", "sentinel_password_file": "/valkey/sentinel/password",
			"tls": {"ca": "/valkey/tls/ca.crt", "cert": "/valkey/tls/tls.crt", "key": "/valkey/tls/tls.key", "name": "valkey.example.com"}}`,
	} {
		var got struct{ Store map[string]any }
		if err := yaml.Unmarshal([]byte(configFiles(t, rendered(t, modes(t)[mode]))["ratelimit.yaml"]), &got); err != nil {
			t.Fatal(err)
		}
		var settings any
		if err := json.Unmarshal([]byte(want), &settings); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"type": "valkey", "valkey": settings}, got.Store); diff != "" {
			t.Errorf("%s: store (-want +got):\n%s", mode, diff)
		}
	}
}

// A service like ElastiCache has certificates of the authorities of the image.
func TestValkeyWithAuthoritiesOfTheImage(t *testing.T) {
	objects := rendered(t, with(modes(t)["fleet-valkey"], "store.valkey.tls.enabled", true))
	if text := configFiles(t, objects)["ratelimit.yaml"]; !strings.Contains(text, "tls: {}\n") {
		t.Errorf("no empty object tls in\n%s", text)
	}
}

// A pod sees of a Secret the one password that it needs, in a directory that Kubernetes keeps up to
// date. Its content is in no object: a new password starts no pods.
func TestValkeySecrets(t *testing.T) {
	spec := pod(t, rendered(t, modes(t)["fleet-valkey-full"])).Spec
	got := map[string]core.SecretVolumeSource{}
	for _, mount := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == mount.Name })
		if secret := spec.Volumes[i].Secret; secret != nil {
			got[mount.MountPath] = *secret
		}
	}
	password := []core.KeyToPath{{Key: "ratelimit", Path: "password"}}
	watcher := []core.KeyToPath{{Key: "watcher", Path: "password"}}
	want := map[string]core.SecretVolumeSource{
		"/valkey/server": {SecretName: "valkey", Items: password}, "/valkey/sentinel": {SecretName: "sentinels", Items: watcher}, "/valkey/tls": {SecretName: "valkey-tls"},
		"/admin-tls": {SecretName: "ratelimit-admin"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
}

// Pods may ask DNS, sentinels at each of their ports, and the server.
func TestValkeyNetworkPolicy(t *testing.T) {
	full := modes(t)["fleet-valkey-full"]
	for _, test := range []struct {
		values values
		want   []int32
	}{
		{full, []int32{26379, 26380, 6379}},
		{with(with(full, "store", modes(t)["fleet-valkey"]["store"]), "store.valkey.addresses", []any{"[::1]:7000"}), []int32{7000}},
	} {
		egress := get[networking.NetworkPolicy](t, rendered(t, test.values), "NetworkPolicy/edge-ratelimit").Spec.Egress
		if len(egress) != 2 {
			t.Fatalf("egress: got %+v, want DNS and the server", egress)
		}
		var got []int32
		for _, port := range egress[1].Ports {
			got = append(got, port.Port.IntVal)
		}
		if !slices.Equal(got, test.want) || egress[0].Ports[0].Port.IntVal != 53 {
			t.Errorf("ports: got %v, want %v; DNS %+v", got, test.want, egress[0])
		}
	}
}

// Pods are replaced when any value of the server changes: the service reads them at its start.
func TestValkeyRestarts(t *testing.T) {
	full := modes(t)["fleet-valkey-full"]
	hash := func(v values) string { return pod(t, rendered(t, v)).Annotations["checksum/restart"] }
	changed := map[string]any{
		"addresses": []any{"sentinel:26379"}, "master": "other", "database": 3, "table": "other", "create": false, "onLoss": "refuse", "durability": "server", "usage": true,
		"username": "other", "passwordSecret": values{"name": ""}, "sentinelUsername": "other", "sentinelPasswordSecret": values{"name": ""},
		"tls": values{"enabled": true, "clientCertificate": false, "secretName": ""},
	}
	for key := range readValues(t, filepath.Join(chartDir, "values.yaml"))["store"].(values)["valkey"].(values) {
		value, tried := changed[key]
		if !tried {
			t.Errorf("no change of %s is tried", key)
		} else if hash(with(full, "store.valkey."+key, value)) == hash(full) {
			t.Errorf("%s: pods are not replaced", key)
		}
	}
}

// The container of a fleet runs on a server, with the password in the Secret's file.
func TestValkeyRuns(t *testing.T) {
	server := valkeytest.Start(t, "--requirepass", "hush")
	v := with(modes(t)["fleet-valkey"], "store.valkey.addresses", []any{server.Address})
	v = with(v, "store.valkey.create", true)
	r := contain(t, os.Getenv(envoytest.ProgramVariable), rendered(t, v), "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	if err := os.WriteFile(r.path("/valkey/server/password"), []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	if err := r.ask(7); err != nil {
		t.Error(err)
	}
	if n, err := strconv.Atoi(server.Must("DBSIZE")); err != nil || n == 0 {
		t.Errorf("the server has %d keys, %v", n, err)
	}
	if strings.Contains(r.logged(), "hush") {
		t.Errorf("the log has the password: %s", r.logged())
	}
}
