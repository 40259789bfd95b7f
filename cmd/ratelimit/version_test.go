package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	build := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: version}}
	}
	for _, test := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"v1.2.3", build("v1.2.2"), "v1.2.3"},
		{"", build("v1.2.3"), "v1.2.3"},
		{"", build("v0.0.0-20260102030405-0123456789ab+dirty"), "v0.0.0-20260102030405-0123456789ab+dirty"},
		{"", build("(devel)"), "dev"},
		{"", build(""), "dev"},
		{"", nil, "dev"},
	} {
		if got := versionOf(test.linked, test.info); got != test.want {
			t.Errorf("%q, %+v: got %q, want %q", test.linked, test.info, got, test.want)
		}
	}
}

const modulePath = "github.com/ratelimit/ratelimit"

// go install builds the package that the README names, and the program prints its version. No
// module proxy has the package in a test, so that it is installed from here.
func TestGoInstall(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("`go install ([^`@]+)@latest`").FindSubmatch(readme)
	if m == nil || string(m[1]) != modulePath+"/cmd/ratelimit" {
		t.Fatalf("the README installs %s", m)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if directives := regexp.MustCompile(`(?m)^(replace|exclude)\b.*`).Find(module); directives != nil {
		t.Errorf("go install of a version refuses a module with %s", directives)
	}
	bin := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", string(m[1])) // #nosec G204 -- the package is compared above
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	out, err := install.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.CommandContext(t.Context(), filepath.Join(bin, "ratelimit"), "version").Output() // #nosec G204 -- the program built above
	if err != nil || !regexp.MustCompile(`^ratelimit (v\S+|dev) go1\.\d+\S* \w+/\w+\n$`).Match(got) {
		t.Errorf("version prints %q, %v", got, err)
	}
	if info, ok := debug.ReadBuildInfo(); ok && !strings.Contains(string(got), info.GoVersion) {
		t.Errorf("version prints %q without %s", got, info.GoVersion)
	}
}
