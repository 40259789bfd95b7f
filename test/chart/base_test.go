package chart_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var update = flag.Bool("update", false, "write examples/kustomize/base anew from the chart")

// kustomizeDir is where the base and its overlay are.
var kustomizeDir = filepath.Join("..", "..", "examples", "kustomize")

// ofHelm are the lines that mean something to Helm only, the comment and the annotation of
// the hash, and the namespace, which is the overlay's.
var ofHelm = regexp.MustCompile(`(?m)^ *(helm\.sh/chart|app\.kubernetes\.io/(version|managed-by)|namespace): .*\n| *annotations:\n *# of the settings .*\n *checksum/restart: .*\n`)

// base returns the base as the chart makes it: a fleet without its rules.
func base(t *testing.T) string {
	t.Helper()
	v := modes(t)["fleet"]
	for path, value := range map[string]any{
		"fullnameOverride": "ratelimit", "image.repository": "ratelimit", "image.tag": "latest", "serviceAccount.roleArn": "",
	} {
		v = with(v, path, value)
	}
	documents, _, err := render(load(t), v)
	if err != nil {
		t.Fatal(err)
	}
	text := new(strings.Builder)
	text.WriteString("# Made of charts/ratelimit: cd test/chart && go test -run TestBase -update\n")
	for _, document := range documents {
		if !strings.Contains(document, "kind: ConfigMap\n") {
			document = strings.ReplaceAll(ofHelm.ReplaceAllString(document, ""), "instance: edge", "instance: ratelimit")
			text.WriteString("---\n" + strings.TrimSpace(document) + "\n")
		}
	}
	return text.String()
}

// The base equals the chart's fleet.
func TestBase(t *testing.T) {
	file := filepath.Join(kustomizeDir, "base", "ratelimit.yaml")
	want := base(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := readFile(t, file); got != want {
		t.Errorf("%s differs from the chart; `cd test/chart && go test -run TestBase -update` writes it", file)
	}
}

// build returns the objects that Kustomize makes of a directory, decoded strictly.
func build(t *testing.T, dir string) map[string]any {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(kustomizeDir, dir))
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, split(string(text)))
}

// Kustomize builds the base, and Kubernetes reads the result.
func TestKustomizeBase(t *testing.T) {
	if got, want := kinds(build(t, "base")), "Deployment PodDisruptionBudget Service ServiceAccount"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The overlay is an installation: its image, replicas, role and rules are in place.
func TestKustomizeOverlay(t *testing.T) {
	objects := build(t, "overlay")
	deployment := get[apps.Deployment](t, objects, "Deployment/ratelimit")
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/ratelimit:v0.1.0" || *deployment.Spec.Replicas != 3 || deployment.Namespace != "ratelimit" {
		t.Errorf("got %d replicas of %s in %s", *deployment.Spec.Replicas, image, deployment.Namespace)
	}
	account := get[core.ServiceAccount](t, objects, "ServiceAccount/"+deployment.Spec.Template.Spec.ServiceAccountName)
	if role := account.Annotations["eks.amazonaws.com/role-arn"]; role == "" {
		t.Error("the ServiceAccount has no role")
	}
	wantInOrder(t, mountedConfig(t, objects))
}

// mountedConfig returns the files of the ConfigMap that pods mount.
func mountedConfig(t *testing.T, objects map[string]any) map[string]string {
	t.Helper()
	mounted := ""
	for _, volume := range pod(t, objects).Spec.Volumes {
		if volume.ConfigMap != nil {
			mounted = volume.ConfigMap.Name
		}
	}
	return get[core.ConfigMap](t, objects, "ConfigMap/"+mounted).Data
}

// The overlay on a server has the password where the rules say.
func TestKustomizeOverlayOnAServer(t *testing.T) {
	objects := build(t, "overlay-valkey")
	files := mountedConfig(t, objects)
	wantInOrder(t, files)
	spec := pod(t, objects).Spec
	mount, volume := spec.Containers[0].VolumeMounts[2], spec.Volumes[2]
	if mount.Name != volume.Name || volume.Secret == nil || volume.Secret.SecretName != "valkey" || !strings.Contains(files["ratelimit.yaml"], "password_file: "+mount.MountPath+"/password}") {
		t.Errorf("got %+v of %+v, and the rules\n%s", mount, volume, files["ratelimit.yaml"])
	}
}
