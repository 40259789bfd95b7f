package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// releases is the configuration of releases, as far as it is tested.
type releases struct {
	Builds []struct {
		ID     string   `yaml:"id"`
		Binary string   `yaml:"binary"`
		Main   string   `yaml:"main"`
		Env    []string `yaml:"env"`
		Flags  []string `yaml:"flags"`
		Linker []string `yaml:"ldflags"`
		Goos   []string `yaml:"goos"`
		Goarch []string `yaml:"goarch"`
		Time   string   `yaml:"mod_timestamp"`
	} `yaml:"builds"`
	Archives []struct {
		ID      string      `yaml:"id"`
		Builds  []string    `yaml:"ids"`
		Formats []string    `yaml:"formats"`
		Files   []yaml.Node `yaml:"files"`
	} `yaml:"archives"`
}

// A release is built of existing files, without C, paths or the time of the build.
func TestReleases(t *testing.T) {
	var r releases
	if err := yaml.Unmarshal([]byte(readFile(t, ".goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	for i, targets := range []int{4, 2} {
		build := r.Builds[i]
		if !slices.Contains(build.Env, "CGO_ENABLED=0") || !slices.Contains(build.Flags, "-trimpath") || build.Time != "{{ .CommitTimestamp }}" || len(build.Goos)*len(build.Goarch) < targets {
			t.Errorf("build: %+v", build)
		}
		variable := regexp.MustCompile(`-X github\.com/ratelimit/ratelimit/([\w/]+)\.(\w+)=`).FindStringSubmatch(build.Linker[0])
		if variable == nil || !strings.Contains(readFile(t, variable[1], "version.go"), "\nvar "+variable[2]+" = ") {
			t.Errorf("the linker sets %v, which the program does not have", variable)
		}
	}
	for i := range r.Archives[0].Files {
		var file struct {
			Source string `yaml:"src"`
		}
		if err := r.Archives[0].Files[i].Decode(&file); err != nil {
			t.Fatal(err)
		}
		readFile(t, file.Source)
	}
}

// extraFiles are files that goreleaser does not make.
type extraFiles struct {
	Files []struct {
		Glob string `yaml:"glob"`
	} `yaml:"extra_files"`
}

func (e *extraFiles) globs() []string {
	all := make([]string, 0, len(e.Files))
	for _, file := range e.Files {
		all = append(all, file.Glob)
	}
	return all
}

// A release has the chart, with the version of the release, and its checksum.
func TestReleasesOfTheChart(t *testing.T) {
	var r struct {
		Checksum extraFiles `yaml:"checksum"`
		Release  extraFiles `yaml:"release"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, ".goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	const chart = "./bin/ratelimit-*.tgz"
	if !slices.Contains(r.Checksum.globs(), chart) || !slices.Contains(r.Release.globs(), chart) {
		t.Errorf("checksums of %q, files %q; want %s in both", r.Checksum.globs(), r.Release.globs(), chart)
	}
	workflow := readFile(t, ".github", "workflows", "release.yaml")
	packaged, released, both := strings.Cut(workflow, "goreleaser/goreleaser-action")
	const command = `helm package charts/ratelimit --version "${GITHUB_REF_NAME#v}" --app-version "$GITHUB_REF_NAME" --destination bin`
	if !both || !strings.Contains(packaged, command) || strings.Contains(released, "helm package") {
		t.Errorf("the workflow does not package the chart before the release: %s", command)
	}
	if !strings.Contains(readFile(t, ".gitignore"), "\n/bin/\n") {
		t.Error("git sees bin, so that the tree of a release is not clean")
	}
}

// A release has the code of the aggregator as AWS Lambda takes it: a ZIP file for each architecture
// with a program bootstrap and nothing else.
func TestReleasesOfTheFunction(t *testing.T) {
	var r releases
	if err := yaml.Unmarshal([]byte(readFile(t, ".goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	build, archive := r.Builds[1], r.Archives[1]
	if build.ID != "lambda" || build.Binary != "bootstrap" || !slices.Equal(build.Goos, []string{"linux"}) || !slices.Equal(build.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("build: %+v", build)
	}
	if !slices.Equal(archive.Builds, []string{"lambda"}) || !slices.Equal(archive.Formats, []string{"zip"}) || len(archive.Files) != 1 || archive.Files[0].Value != "none*" {
		t.Errorf("archive: %+v", archive)
	}
	if first := r.Archives[0]; !slices.Equal(first.Builds, []string{"ratelimit"}) {
		t.Errorf("the archive of the program has %q", first.Builds)
	}
}

// promtool has the version whose parts the tests here use.
func TestPromtoolIsOfTheSameVersion(t *testing.T) {
	of := regexp.MustCompile(`(?m)^\tgithub\.com/prometheus/prometheus (v\S+)`)
	here, tool := of.FindStringSubmatch(readFile(t, "test", "deploy", "go.mod")), of.FindStringSubmatch(readFile(t, "tools", "promtool", "go.mod"))
	if here == nil || tool == nil || here[1] != tool[1] {
		t.Errorf("the tests use Prometheus %q, and tools/promtool has %q", here, tool)
	}
}

// Forms for issues have fields, each with an id and a label.
func TestIssueForms(t *testing.T) {
	for _, name := range []string{"bug.yaml", "feature.yaml"} {
		var form struct {
			Name string `yaml:"name"`
			Body []struct {
				Type       string `yaml:"type"`
				ID         string `yaml:"id"`
				Attributes struct {
					Label string `yaml:"label"`
				} `yaml:"attributes"`
			} `yaml:"body"`
		}
		if err := yaml.Unmarshal([]byte(readFile(t, ".github", "ISSUE_TEMPLATE", name)), &form); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, field := range form.Body {
			if field.Type == "markdown" {
				continue
			}
			if field.ID == "" || field.Attributes.Label == "" || ids[field.ID] {
				t.Errorf("%s: %+v", name, field)
			}
			ids[field.ID] = true
		}
		if form.Name == "" || len(ids) < 3 {
			t.Errorf("%s: %q with %d fields", name, form.Name, len(ids))
		}
	}
}
