package chart_test

import (
	"maps"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// Administration is on the network only with a Secret for TLS. Then it has a port and a Service of its own, and a policy
// lets in operators alone.
func TestAdminOnTheNetwork(t *testing.T) {
	full := rendered(t, modes(t)["fleet-valkey-full"])
	service := get[core.Service](t, full, "Service/edge-ratelimit-admin").Spec
	if service.Type != core.ServiceTypeClusterIP || len(service.Ports) != 1 || service.Ports[0].Port != 8082 || service.Ports[0].TargetPort.StrVal != "admin" {
		t.Errorf("the Service: %+v", service)
	}
	spec := pod(t, full).Spec
	found := 0
	for _, port := range spec.Containers[0].Ports {
		if port.Name == "admin" && port.ContainerPort == 8082 {
			found++
		}
	}
	for _, mount := range spec.Containers[0].VolumeMounts {
		if mount.Name == "admin-tls" && mount.MountPath == "/admin-tls" && mount.ReadOnly {
			found++
		}
	}
	for _, volume := range spec.Volumes {
		if volume.Name == "admin-tls" && volume.Secret != nil && volume.Secret.SecretName == "ratelimit-admin" {
			found++
		}
	}
	if found != 3 {
		t.Errorf("the pod has %d of port, mount and volume: %+v", found, spec)
	}
	policy := get[networking.NetworkPolicy](t, full, "NetworkPolicy/edge-ratelimit").Spec
	if n := len(policy.Ingress); n != 2 || policy.Ingress[1].Ports[0].Port.StrVal != "admin" || policy.Ingress[1].From[0].PodSelector.MatchLabels["app"] != "login" {
		t.Errorf("the policy lets in %+v", policy.Ingress)
	}
}

// The configuration has the address and the files of the chart, and the tokens of the user.
func TestAdminConfig(t *testing.T) {
	memory := with(with(modes(t)["memory"], "admin.tls.secretName", "admin"), "config.server.admin.tokens", values{"ci": values{"role": "read", "hash": "sha256:x"}})
	var config struct {
		Server struct {
			Admin struct {
				Address string
				TLS     map[string]string
				Tokens  map[string]any
			}
		}
	}
	objects := rendered(t, memory)
	if err := yaml.Unmarshal([]byte(get[core.ConfigMap](t, objects, "ConfigMap/edge-ratelimit").Data["ratelimit.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	admin := config.Server.Admin
	if admin.Address != ":8082" || len(admin.TLS) != 2 || admin.TLS["cert"] != "/admin-tls/tls.crt" || admin.TLS["key"] != "/admin-tls/tls.key" || admin.Tokens["ci"] == nil {
		t.Errorf("server.admin is %+v", admin)
	}
	for name := range rendered(t, modes(t)["memory"]) {
		if name == "Service/edge-ratelimit-admin" {
			t.Error("there is a Service without admin.tls")
		}
	}
}

// A proxy of the user's configuration is that of the service, and a change of it replaces no pods, as the service reads it
// again.
func TestAdminProxy(t *testing.T) {
	full := modes(t)["fleet-valkey-full"]
	objects := rendered(t, full)
	var config struct {
		Server struct {
			Admin struct {
				TLS   map[string]string
				Proxy struct {
					Certificate, Role string
					Users, Groups     map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(configFiles(t, objects)["ratelimit.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	admin := config.Server.Admin
	if admin.TLS["client_ca"] != "/admin-tls/ca.crt" || admin.Proxy.Certificate != "login.auth.svc" || admin.Proxy.Role != "read" ||
		admin.Proxy.Users["ada@example.com"] != "administer" || admin.Proxy.Groups["sre"] != "operate" {
		t.Errorf("server.admin is %+v", admin)
	}
	changed := rendered(t, with(full, "config.server.admin.proxy.role", "operate"))
	if before, after := pod(t, objects).Annotations, pod(t, changed).Annotations; !maps.Equal(before, after) {
		t.Errorf("annotations of pods: %v, then %v", before, after)
	}
}
