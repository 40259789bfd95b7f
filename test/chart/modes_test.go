package chart_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
)

// kinds returns the kinds of objects, sorted.
func kinds(objects map[string]any) string {
	all := make([]string, 0, len(objects))
	for name := range objects {
		kind, _, _ := strings.Cut(name, "/")
		all = append(all, kind)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Each mode has the objects that it needs, and no others.
func TestObjects(t *testing.T) {
	want := map[string]string{
		"memory":            "ConfigMap Deployment Service ServiceAccount",
		"durable":           "ConfigMap NetworkPolicy PrometheusRule Service ServiceAccount StatefulSet",
		"fleet":             "ConfigMap Deployment PodDisruptionBudget Service ServiceAccount",
		"fleet-usage":       "ConfigMap Deployment Deployment PodDisruptionBudget Service Service ServiceAccount",
		"fleet-valkey":      "ConfigMap Deployment PodDisruptionBudget Service ServiceAccount",
		"fleet-valkey-full": "ConfigMap Deployment HorizontalPodAutoscaler NetworkPolicy PodDisruptionBudget PrometheusRule Service Service ServiceAccount",
		"fleet-full":        "ConfigMap Deployment HorizontalPodAutoscaler NetworkPolicy PodDisruptionBudget PrometheusRule Service Service ServiceAccount ServiceMonitor",
	}
	for name, v := range modes(t) {
		if got := kinds(rendered(t, v)); got != want[name] {
			t.Errorf("%s: got %s, want %s", name, got, want[name])
		}
	}
}

// pods returns the pods that a mode runs, by the name of their controller.
func pods(t *testing.T, objects map[string]any) map[string]core.PodTemplateSpec {
	t.Helper()
	all := make(map[string]core.PodTemplateSpec)
	for name, object := range objects {
		switch o := object.(type) {
		case *apps.Deployment:
			all[name] = o.Spec.Template
		case *apps.StatefulSet:
			all[name] = o.Spec.Template
		}
	}
	if len(all) == 0 {
		t.Fatal("no object runs pods")
	}
	return all
}

// pod returns the service's pod, or the aggregator's where there is no other.
func pod(t *testing.T, objects map[string]any) core.PodTemplateSpec {
	t.Helper()
	all := pods(t, objects)
	first := slices.Sorted(maps.Keys(all))[0] // the aggregator's name is the service's with more behind
	return all[first]
}

// Pods have no more rights than they need, in every mode.
func TestPodsAreRestricted(t *testing.T) {
	for name, v := range modes(t) {
		for of, template := range pods(t, rendered(t, v)) {
			for rule, holds := range restrictions(&template.Spec) {
				if !holds {
					t.Errorf("%s, %s: %s: does not hold", name, of, rule)
				}
			}
		}
	}
}

// restrictions are the rules for a pod, and whether they hold.
func restrictions(spec *core.PodSpec) map[string]bool {
	s, c := spec.SecurityContext, spec.Containers[0].SecurityContext
	return map[string]bool{
		"not root":           s.RunAsNonRoot != nil && *s.RunAsNonRoot && s.RunAsUser != nil && *s.RunAsUser == 65532,
		"seccomp":            s.SeccompProfile != nil && s.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault,
		"read-only root":     c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem,
		"no escalation":      c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation,
		"no capabilities":    c.Capabilities != nil && slices.Equal(c.Capabilities.Drop, []core.Capability{"ALL"}) && len(c.Capabilities.Add) == 0,
		"no token":           spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken,
		"a limit of memory":  !spec.Containers[0].Resources.Limits.Memory().IsZero(),
		"no host namespaces": !spec.HostNetwork && !spec.HostPID && !spec.HostIPC,
	}
}

// The configuration is mounted as a directory: a file would never change in a pod.
func TestConfigIsADirectory(t *testing.T) {
	for name, v := range modes(t) {
		for of, template := range pods(t, rendered(t, v)) {
			for _, mount := range template.Spec.Containers[0].VolumeMounts {
				if mount.SubPath != "" || mount.SubPathExpr != "" {
					t.Errorf("%s, %s: %s is mounted by a sub-path", name, of, mount.Name)
				}
			}
		}
	}
}

// Selectors of all objects find the pods, and names meet.
func TestSelectors(t *testing.T) {
	for name, v := range modes(t) {
		objects := rendered(t, v)
		service, all := pod(t, objects).Labels, pods(t, objects)
		for object, selector := range selectors(objects) {
			labels := service
			if strings.HasSuffix(object, "-aggregator") {
				labels = all["Deployment/edge-ratelimit-aggregator"].Labels
			}
			if len(selector) < 2 {
				t.Errorf("%s: %s selects by %v, want two labels", name, object, selector)
			}
			for key, value := range selector {
				if labels[key] != value {
					t.Errorf("%s: %s selects %s=%s, and pods have %v", name, object, key, value, labels)
				}
			}
		}
	}
}

// selectors returns the labels by which objects select pods.
func selectors(objects map[string]any) map[string]map[string]string {
	all := make(map[string]map[string]string)
	for name, object := range objects {
		switch o := object.(type) {
		case *apps.Deployment:
			all[name] = o.Spec.Selector.MatchLabels
			for _, constraint := range o.Spec.Template.Spec.TopologySpreadConstraints {
				all[name+" "+constraint.TopologyKey] = constraint.LabelSelector.MatchLabels
			}
		case *apps.StatefulSet:
			all[name] = o.Spec.Selector.MatchLabels
		case *core.Service:
			all[name] = o.Spec.Selector
		case *policy.PodDisruptionBudget:
			all[name] = o.Spec.Selector.MatchLabels
		case *networking.NetworkPolicy:
			all[name] = o.Spec.PodSelector.MatchLabels
		}
	}
	return all
}

// Gateways find every pod by a headless Service, at the port of the pods themselves.
func TestService(t *testing.T) {
	service := get[core.Service](t, rendered(t, modes(t)["fleet"]), "Service/edge-ratelimit")
	if service.Spec.ClusterIP != core.ClusterIPNone {
		t.Errorf("clusterIP: got %q, want None", service.Spec.ClusterIP)
	}
	port := service.Spec.Ports[0]
	if port.Name != "grpc" || port.Port != 8081 || port.AppProtocol == nil || *port.AppProtocol != "grpc" {
		t.Errorf("port: got %+v", port)
	}
	outside := rendered(t, modes(t)["fleet-full"])
	if ports := get[core.Service](t, outside, "Service/limits").Spec.Ports; len(ports) != 1 || ports[0].Name != "grpc" {
		t.Errorf("a load balancer has the ports %v, want grpc alone", ports)
	}
	if ports := get[core.Service](t, outside, "Service/limits-http").Spec.Ports; len(ports) != 1 || ports[0].Name != "http" {
		t.Errorf("the Service for monitoring has the ports %v, want http alone", ports)
	}
}

// Replicas that share a table are replaced one after another; a pod with buckets of its
// own ends before the next begins.
func TestUpdates(t *testing.T) {
	all := modes(t)
	memory := get[apps.Deployment](t, rendered(t, all["memory"]), "Deployment/edge-ratelimit")
	if memory.Spec.Strategy.Type != apps.RecreateDeploymentStrategyType || *memory.Spec.Replicas != 1 {
		t.Errorf("memory: got %v with %d replicas", memory.Spec.Strategy.Type, *memory.Spec.Replicas)
	}
	for _, mode := range []string{"fleet", "fleet-valkey"} {
		fleet := get[apps.Deployment](t, rendered(t, all[mode]), "Deployment/edge-ratelimit")
		if r := fleet.Spec.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.IntValue() != 0 || *fleet.Spec.Replicas != 3 {
			t.Errorf("%s: got %+v with %d replicas", mode, fleet.Spec.Strategy, *fleet.Spec.Replicas)
		}
		if n := len(fleet.Spec.Template.Spec.TopologySpreadConstraints); n != 2 {
			t.Errorf("%s: got %d constraints of topology, want zones and nodes", mode, n)
		}
	}
	durable := get[apps.StatefulSet](t, rendered(t, all["durable"]), "StatefulSet/edge-ratelimit")
	if *durable.Spec.Replicas != 1 || len(durable.Spec.VolumeClaimTemplates) != 1 || durable.Spec.ServiceName != "edge-ratelimit" {
		t.Errorf("durable: got %+v", durable.Spec)
	}
}

// The autoscaler alone says how many replicas there are.
func TestAutoscaler(t *testing.T) {
	objects := rendered(t, modes(t)["fleet-full"])
	if replicas := get[apps.Deployment](t, objects, "Deployment/limits").Spec.Replicas; replicas != nil {
		t.Errorf("the Deployment has %d replicas of its own", *replicas)
	}
	scaler := get[autoscaling.HorizontalPodAutoscaler](t, objects, "HorizontalPodAutoscaler/limits")
	if scaler.Spec.ScaleTargetRef.Name != "limits" || *scaler.Spec.MinReplicas != 3 || scaler.Spec.MaxReplicas != 12 {
		t.Errorf("got %+v", scaler.Spec)
	}
}

// The role of IRSA is at the account that the pods run as.
func TestRole(t *testing.T) {
	objects := rendered(t, modes(t)["fleet"])
	account := get[core.ServiceAccount](t, objects, "ServiceAccount/"+pod(t, objects).Spec.ServiceAccountName)
	if got, want := account.Annotations["eks.amazonaws.com/role-arn"], "arn:aws:iam::123456789012:role/ratelimit"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	objects = rendered(t, with(modes(t)["memory"], "serviceAccount.create", false))
	if got := pod(t, objects).Spec.ServiceAccountName; got != "default" {
		t.Errorf("without an account of its own: got %q, want default", got)
	}
}

// A policy lets in gateways to gRPC and monitoring to HTTP, and out the calls of the store.
func TestNetworkPolicy(t *testing.T) {
	all := modes(t)
	durable := get[networking.NetworkPolicy](t, rendered(t, all["durable"]), "NetworkPolicy/edge-ratelimit").Spec
	if len(durable.Ingress) != 1 || len(durable.Egress) != 0 || len(durable.PolicyTypes) != 2 {
		t.Errorf("durable: got %+v", durable)
	}
	full := get[networking.NetworkPolicy](t, rendered(t, all["fleet-full"]), "NetworkPolicy/limits").Spec
	for i, port := range []string{"grpc", "http"} {
		if in := full.Ingress[i]; len(in.From) != 1 || in.Ports[0].Port.StrVal != port {
			t.Errorf("ingress %d: got %+v, want port %s", i, in, port)
		}
	}
	if len(full.Egress) != 4 {
		t.Errorf("egress: got %+v, want DNS, AWS, Pod Identity and one more", full.Egress)
	}
}

// Pods are replaced when a setting changes that a reload leaves as it is, and only then.
func TestRestarts(t *testing.T) {
	fleet := modes(t)["fleet"]
	hash := func(v values) string {
		return pod(t, rendered(t, v)).Annotations["checksum/restart"]
	}
	before := hash(fleet)
	for path, value := range map[string]any{
		"config.headers": []any{}, "config.limits": values{"system": values{"rpm": "60/minute"}},
		"config.decision.on_unavailable": "deny", "config.log.denials": values{"per_second": 5}, "config.server.admin.tokens": values{"ci": values{"role": "read"}},
	} {
		after := hash(with(fleet, path, value))
		if path == "config.server.admin.tokens" { // the section is new, its tokens do not count
			after = hash(with(with(fleet, path, value), "config.server.admin.tokens", values{}))
			if with := hash(with(fleet, path, value)); with != after {
				t.Errorf("%s: pods are replaced", path)
			}
			continue
		}
		if after != before {
			t.Errorf("%s: pods are replaced", path)
		}
	}
	changed := map[string][]string{ // paths of the values, and a value in JSON for each, by the setting of docs/configuration.md
		"server": {"config.server.grpc.max_connections", "7", "config.server.http.pprof", "true", "admin.enabled", "false", "admin.tls", `{"secretName": "a", "clientCA": true}`},
		"store":  {"store.dynamodb.table", `"other"`}, "decision.timeout": {"config.decision.timeout", `"20ms"`}, "cache": {"config.cache.ttl", `"30s"`},
		"audit": {"config.audit.retention", `"48h"`}, "budgets.webhook": {"config.budgets.webhook.url", `"https://example.com"`}, "drain": {"drainSeconds", "20"},
		"xds":       {"config.xds.address", `"plane:18000"`},
		"mirror":    {"config.mirror.address", `"old:8081"`},
		"log.level": {"config.log.level", `"debug"`}, "log.format": {"config.log.format", `"json"`},
	}
	for _, setting := range startOnly(t) {
		if changed[setting] == nil {
			t.Errorf("no change of %s is tried", setting)
		}
		for c := range slices.Chunk(changed[setting], 2) {
			var value any
			if err := json.Unmarshal([]byte(c[1]), &value); err != nil {
				t.Fatal(err)
			}
			if hash(with(fleet, c[0], value)) == before {
				t.Errorf("%s: pods are not replaced", c[0])
			}
		}
	}
}

// startOnly returns the settings of which the documentation says that they take effect at a start only.
func startOnly(t *testing.T) (settings []string) {
	t.Helper()
	const says = " take effect when the program is restarted"
	for line := range strings.Lines(readFile(t, "..", "..", "docs", "configuration.md")) {
		if list, _, ok := strings.Cut(line, says); ok {
			for _, name := range regexp.MustCompile("`[a-z_.]+`").FindAllString(list, -1) {
				settings = append(settings, strings.Trim(name, "`"))
			}
		}
	}
	settings = slices.DeleteFunc(settings, func(s string) bool { return s == "tokens" || s == "proxy" }) // the exceptions of `server`
	if len(settings) < 8 {
		t.Fatalf("docs/configuration.md names the settings %q", settings)
	}
	return settings
}

// The notes name the objects of the installation.
func TestNotes(t *testing.T) {
	for mode, want := range map[string][]string{
		"memory":            {"edge-ratelimit.ratelimit.svc.cluster.local, port 8081", "rollout status deployment/edge-ratelimit", "in memory"},
		"durable":           {"rollout status statefulset/edge-ratelimit", "exec edge-ratelimit-0 -- ratelimit backup --data /var/lib/ratelimit/data"},
		"fleet":             {"STRICT_DNS", "The table limits must exist"},
		"fleet-valkey":      {"STRICT_DNS", "The table ratelimit must exist", "deployment/edge-ratelimit -- ratelimit valkey check --config /etc/ratelimit/ratelimit.yaml"},
		"fleet-valkey-full": {"Replicas make the table edge", "Set store.valkey.create: false now"},
		"fleet-full":        {"limits.ratelimit.svc.cluster.local, port 8081, HTTP/2, TLS", "services/limits-http:http/proxy"},
	} {
		_, notes, err := render(load(t), modes(t)[mode])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(notes, text) {
				t.Errorf("%s: no %q in\n%s", mode, text, notes)
			}
		}
	}
}
