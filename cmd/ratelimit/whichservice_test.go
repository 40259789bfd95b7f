package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// broken is no YAML. Its line of the data directory can be read.
const broken = "domains: [\nstore: {embedded: {data: data}}\n"

// ownPlace has commands find a run directory and contexts of their own, in an empty working directory, which it returns.
func ownPlace(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv(server.RunDirVariable, filepath.Join(dir, "run"))
	t.Chdir(dir)
	return dir
}

// place writes a file into the working directory.
func place(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// asks runs a command, and requires its exit code and texts on either stream.
func asks(t *testing.T, code int, wants []string, args ...string) {
	t.Helper()
	got, stdout, stderr := output(t, args...)
	if got != code {
		t.Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	for _, want := range wants {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("%v lacks %q:\n%s%s", args, want, stdout, stderr)
		}
	}
}

// A command with a configuration file acts on a service that runs with this file, and on no other of the run
// directory: also where the file is no YAML, where the service has its data elsewhere, and where it does not run.
func TestAFileLeadsToItsServiceAlone(t *testing.T) {
	dir := ownPlace(t)
	demo := start(t, "--demo")
	demoURL := demo.adminURL(t)
	disable := []string{"disable", "entity", "user/ada", "--allow-new"}
	refused := []string{"no service with the configuration file " + filepath.Join(dir, "ratelimit.yaml") + " was found", demoURL + " runs with the example rules of --demo", "--server unix://PATH", "--data DIR", "--context NAME"}
	asks(t, command.ExitOK, nil, append(disable, "--dry-run")...) // without a file

	place(t, "ratelimit.yaml", hundredPerDay)
	asks(t, command.ExitSilence, refused, disable...)
	asks(t, command.ExitSilence, refused, append(disable, "--config", "ratelimit.yaml")...)
	asks(t, command.ExitSilence, refused, "status")
	r := start(t, "--data", "data")
	r.adminURL(t)
	asks(t, command.ExitOK, []string{"entity user/ada disabled"}, disable...) // the file does not name the directory
	asks(t, command.ExitOK, []string{"entity user/ada enabled"}, "enable", "entity", "user/ada", "--data", "data")
	asks(t, command.ExitOK, []string{"user/ada was enabled already"}, "enable", "entity", "user/ada", "--data", "data", "--config", "ratelimit.yaml")
	place(t, "other.yaml", hundredPerDay)
	asks(t, command.ExitSilence, []string{"data/admin.sock runs with " + filepath.Join(dir, "ratelimit.yaml")}, append(disable, "--data", "data", "--config", "other.yaml")...)
	r.end(t)

	place(t, "ratelimit.yaml", broken)
	asks(t, command.ExitUsage, refused, disable...)
	asks(t, command.ExitUsage, []string{"\nratelimit.yaml:"}, disable...) // its mistake
	if code, stdout, stderr := output(t, "list", "disabled", "--server", demoURL); code != command.ExitOK || strings.Contains(stdout, "ada") {
		t.Errorf("the demo has a change of another: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// The service of a file in the run directory is found among others, also while the file is broken.
func TestAFileLeadsToItsServiceAmongOthers(t *testing.T) {
	dir := ownPlace(t)
	start(t, "--demo").adminURL(t)
	place(t, "ratelimit.yaml", hundredPerDay)
	mine := start(t).adminURL(t)
	asks(t, command.ExitOK, []string{"a service with this file runs here"}, "explain", "shop", "user=ada")
	for _, text := range []string{hundredPerDay, broken, "nothing: such\n" + hundredPerDay} {
		place(t, "ratelimit.yaml", text)
		asks(t, command.ExitOK, []string{"entity user/ada disabled"}, "disable", "entity", "user/ada", "--allow-new")
		asks(t, command.ExitOK, []string{"entity user/ada enabled"}, "enable", "entity", "user/ada", "--config", filepath.Join(dir, "ratelimit.yaml"), "--server", mine)
	}
	eventually(t, "the file to be refused", func() bool {
		_, stdout, _ := output(t, "status")
		return strings.Contains(stdout, "refused:")
	})
	asks(t, command.ExitFailure, []string{"next: ratelimit check --config " + filepath.Join(dir, "ratelimit.yaml")}, "status")
}

// A data directory that is relative is found from the working directory, and from that of the file, with the file
// in order or broken. Where no service answers, the error says what it is relative to.
func TestARelativeDataDirectoryIsFound(t *testing.T) {
	dir := ownPlace(t)
	good := "store: {embedded: {data: data}}\n" + hundredPerDay
	place(t, "ratelimit.yaml", good)
	asks(t, command.ExitSilence, []string{"no service answers at " + filepath.Join(dir, "data", "admin.sock"), "relative to the directory in which serve was started"}, "list", "entities")
	file := filepath.Join(dir, "ratelimit.yaml")
	r := start(t, "--config", file)
	r.adminURL(t)
	other := t.TempDir()
	for _, text := range []string{good, broken} {
		place(t, file, text)
		for _, at := range []string{dir, other} {
			t.Chdir(at)
			asks(t, command.ExitOK, nil, "list", "entities", "--config", file)
		}
	}
	t.Chdir(dir) // of the service
	eventually(t, "the broken file to be refused", func() bool {
		_, stdout, _ := output(t, "status", "--config", file)
		return strings.Contains(stdout, "refused:")
	})
	asks(t, command.ExitFailure, []string{"newer files of the configuration are refused", "next: ratelimit check --config " + file}, "status")
	r.end(t)
	asks(t, command.ExitUsage, []string{"may still run with the file before", "--data DIR"}, "status")
}

// Status and doctor say which server answered, and how it was found.
func TestStatusNamesTheServer(t *testing.T) {
	dir := ownPlace(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay))
	url := r.adminURL(t)
	named := func(want string, flags ...string) {
		t.Helper()
		for _, name := range []string{"status", "doctor"} {
			asks(t, command.ExitOK, []string{url + ", " + want}, append([]string{name}, flags...)...)
		}
	}
	named("by --server", "--server", url)
	named("the only one in a run directory")
	t.Setenv("RATELIMIT_SERVER", url)
	named("by RATELIMIT_SERVER")
	t.Setenv("RATELIMIT_SERVER", "")
	asks(t, command.ExitOK, nil, "context", "add", "here", "--server", url, "--use")
	named("by the context here\n")
	place(t, "ratelimit.yaml", hundredPerDay)
	named("by the context here, which comes before " + filepath.Join(dir, "ratelimit.yaml"))
	asks(t, command.ExitOK, nil, "context", "delete", "here")
	mine := start(t)
	url = mine.adminURL(t)
	named("by " + filepath.Join(dir, "ratelimit.yaml"))
}
