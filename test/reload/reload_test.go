package reload_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

const (
	refused = "the new configuration is not used"
	loaded  = `msg="configuration loaded"`
	gone    = "domains in force are gone from the configuration"
)

// Files without a domain never go in force, and check finds the mistake too.
func TestFileWithoutDomains(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]string{"ratelimit.yaml": listed("a")})
	for i, text := range []string{"", "null\n"} {
		p.write("ratelimit.yaml", text)
		p.untilSaid(refused, i+1)
		p.mustLimit("a")
		if ready := p.get("/readyz", ""); !strings.Contains(ready, `"ready": true`) || !strings.Contains(ready, "ratelimit.yaml: the log has the reason") {
			t.Errorf("/readyz with %q:\n%s", text, ready)
		}
		out, err := exec.CommandContext(t.Context(), os.Getenv(envoytest.ProgramVariable), "check", "--config", p.path("ratelimit.yaml")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "has no domain") {
			t.Errorf("check of %q: %v\n%s", text, err, out)
		}
	}
	p.replace("ratelimit.yaml", listed("a", "b"))
	p.untilSaid(loaded, 1)
	p.mustLimit("a", "b")
}

// A file that is written in two parts goes in force as a whole: any part of it that ends
// between two domains would be in order.
func TestFileInTwoParts(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]string{"ratelimit.yaml": listed("a", "b")})
	text := listed("a", "b", "c")
	file, err := os.OpenFile(p.path("ratelimit.yaml"), os.O_WRONLY|os.O_TRUNC, 0)
	p.must(err)
	_, err = file.WriteString(listed("a"))
	p.must(err)
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); {
		p.mustLimit("a", "b")
	}
	_, err = file.WriteString(strings.TrimPrefix(text, listed("a")))
	p.must(err, file.Close())
	p.untilSaid(loaded, 1)
	p.mustLimit("a", "b", "c")
	if n := strings.Count(p.said(), loaded); n != 1 {
		t.Errorf("%d configurations were in force, want 1", n)
	}
}

// A domain whose file is moved away stays for 5 seconds, and for good when it is back.
func TestIncludeThatVanishes(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]string{"ratelimit.yaml": "include: [{path: 'rules.d/*.yaml'}]\n" + listed("a"), "rules.d/b.yaml": limited("b")})
	p.must(os.Rename(p.path("rules.d/b.yaml"), p.path("b.yaml")))
	p.untilSaid(gone, 1)
	p.mustLimit("a", "b")
	p.must(os.Rename(p.path("b.yaml"), p.path("rules.d/b.yaml")))
	p.untilSaid(loaded, 1)
	p.mustLimit("a", "b")
	p.must(os.Rename(p.path("rules.d/b.yaml"), p.path("b.yaml")))
	p.untilSaid(gone, 2)
	since := time.Now()
	p.until("the domain is out of force", func() bool { return p.admits("b") == 2 })
	if after := time.Since(since); after < 4*time.Second {
		t.Errorf("the domain was kept for %v, want 5s", after)
	}
	p.mustLimit("a")
	if n := strings.Count(p.said(), loaded); n != 2 {
		t.Errorf("%d configurations were in force, want 2", n)
	}
}

// TestConfigMap swaps a directory as Kubernetes does: its files are complete, and read
// at once.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	p := &program{t: t, dir: t.TempDir()}
	mount := func(version string, domains ...string) {
		t.Helper()
		p.write(".."+version+"/ratelimit.yaml", listed(domains...))
		p.must(os.Symlink(".."+version, p.path("..data_tmp")), os.Rename(p.path("..data_tmp"), p.path("..data")))
	}
	mount("1", "a")
	p.must(os.Symlink("..data/ratelimit.yaml", p.path("ratelimit.yaml")))
	p.serve()
	mount("2", "a", "b")
	p.untilSaid(loaded, 1)
	p.mustLimit("a", "b")
	p.must(os.RemoveAll(p.path("..1")))
	mount("3", "a", "c") // without b
	p.untilSaid(gone, 1)
	p.mustLimit("a", "b")
	p.untilSaid(loaded, 2)
	p.mustLimit("a", "c")
}

// SIGHUP reads the files at once, and ends nothing; not even then does a file without
// domains go in force.
func TestHangUp(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]string{"ratelimit.yaml": listed("a")})
	p.hangUp()
	p.untilSaid(loaded, 1)
	p.write("ratelimit.yaml", "")
	p.hangUp()
	p.untilSaid(refused, 1)
	p.mustLimit("a")
	p.write("ratelimit.yaml", listed("a", "b"))
	p.hangUp()
	p.untilSaid(loaded, 2)
	p.mustLimit("a", "b")
}

// A file that is no regular one is an error, at the start and later, and delays
// nothing.
func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	key := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for name, place := range map[string]string{"main": "ratelimit.yaml", "include": "rules.d/b.yaml", "key": "key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, map[string]string{
				"ratelimit.yaml": "include: [{path: rules.d/b.yaml}]\nreservation: {keys: [{file: key}]}\n" + listed("a"), "rules.d/b.yaml": limited("b"), "key": key,
			})
			p.must(syscall.Mkfifo(p.path("pipe"), 0o600), os.Rename(p.path("pipe"), p.path(place)))
			p.hangUp()
			p.untilSaid("is no regular file: it is a pipe", 1)
			p.mustLimit("a", "b")
			check(t, p, "is no regular file: it is a pipe")
			p.must(os.Remove(p.path(place)))
			p.write(place, "#")
			p.must(os.Truncate(p.path(place), 1<<30))
			p.hangUp()
			want := "larger than 16 MiB"
			if name == "key" {
				want = "is too large"
			}
			p.untilSaid(want, 1)
			p.mustLimit("a", "b")
			check(t, p, want)
		})
	}
}

// check wants check and serve to refuse the configuration in time, for a reason.
func check(t *testing.T, p *program, want string) {
	t.Helper()
	for _, command := range []string{"check", "serve"} {
		cmd := exec.CommandContext(t.Context(), os.Getenv(envoytest.ProgramVariable), command, "--config", p.path("ratelimit.yaml"))
		hang := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		out, err := cmd.CombinedOutput()
		hang.Stop()
		if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want exit code 2 with %q:\n%s", command, err, want, out)
		}
	}
}
