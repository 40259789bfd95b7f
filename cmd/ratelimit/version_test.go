//go:build release

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
