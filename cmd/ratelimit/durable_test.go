package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

const hundredPerDay = `
limits: {system: {rpm: 100/day}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`

// remaining takes one token of a user and returns how many are left.
func (r *running) remaining(t *testing.T, user string) int {
	t.Helper()
	code, a := r.ask(t, user)
	if code != http.StatusOK || len(a.Statuses) != 1 {
		t.Fatalf("%s: %d, %+v", user, code, a)
	}
	return a.Statuses[0].LimitRemaining
}

// end stops the service cleanly.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop(command.ErrInterrupted)
	if code := r.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}

func TestDataOutlivesTheProcess(t *testing.T) {
	file, dir := programtest.WriteFile(t, "c.yaml", hundredPerDay), filepath.Join(t.TempDir(), "data")
	for life := range 3 {
		r := start(t, "--config", file, "--data", dir)
		for i := range 5 {
			if got, want := r.remaining(t, "ada"), 99-5*life-i; got != want {
				t.Errorf("life %d, request %d leaves %d, want %d", life, i, got, want)
			}
		}
		_, text := r.get(t, "/metrics")
		for _, want := range []string{
			"ratelimit_store_buckets 1", fmt.Sprintf("ratelimit_store_recovered_buckets %d", min(life, 1)),
			"ratelimit_store_open_blocks 0", "ratelimit_store_lost_tokens 0", "ratelimit_store_file_bytes ", "ratelimit_store_file_free_bytes ",
			"ratelimit_store_commits_total ", "ratelimit_store_commit_errors_total 0", "ratelimit_store_last_commit_seconds ",
		} {
			if !strings.Contains(text, "\n"+want) {
				t.Errorf("life %d: no %s", life, want)
			}
		}
		r.end(t)
	}
}

// The directory can come from the configuration too, and one process has it at a time.
func TestOneProcessHasADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	file := programtest.WriteFile(t, "c.yaml", fmt.Sprintf("store: {embedded: {data: %q}}", dir)+hundredPerDay)
	r := start(t, "--config", file)
	backup := filepath.Join(t.TempDir(), "b")
	if code, _, stderr := output(t, "backup", "--config", file, "--output", backup); code != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{
		{"serve", "--config", file, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"},
		{"restore", "--data", dir, backup},
	} {
		code, _, stderr := output(t, args...)
		want := fmt.Sprintf("%s is open in process %d; one process at a time", dir, os.Getpid())
		_, line, _ := strings.Cut(stderr, "ratelimit: ")
		if code != command.ExitFailure || !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
			t.Errorf("%s: exit code %d, stderr lacks the line %q:\n%s", args[0], code, want, stderr)
		}
	}
	r.end(t)
}

func TestDirectoriesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	damaged, taken := filepath.Join(dir, "damaged"), filepath.Join(dir, "file")
	if err := os.Mkdir(damaged, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(damaged, "ratelimit.db"), taken} {
		if err := os.WriteFile(name, []byte("what is this?"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, dir, want string }{
		{"a damaged file", damaged, "is damaged: it has 13 bytes, fewer than any data file; restore a backup with `ratelimit restore`"},
		{"a file", taken, "is a file; a data directory is needed"},
		{"no parent", filepath.Join(dir, "a", "b"), "its parent " + filepath.Join(dir, "a") + " is missing: make it, or mount it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, stderr := output(t, "serve", "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay), "--data", test.dir, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
			if code != command.ExitFailure || !strings.Contains(stderr, "ratelimit: store.embedded.data, or --data: "+test.dir) || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, stderr lacks %q:\n%s", code, test.want, stderr)
			}
		})
	}
}

// A copy made while the service decides is another service's beginning.
func TestBackupAndRestore(t *testing.T) {
	file, dir := programtest.WriteFile(t, "c.yaml", hundredPerDay), t.TempDir()
	first := filepath.Join(dir, "first")
	storeLimit(t, first, "user/bob", limiter.PerDay("rpm", 7))
	r := start(t, "--config", file, "--data", first)
	for range 10 {
		r.remaining(t, "ada")
	}
	if got := r.remaining(t, "bob"); got != 6 {
		t.Fatalf("bob has %d left, want 6, by the stored limit", got)
	}
	backup := filepath.Join(dir, "b")
	code, stdout, stderr := output(t, "backup", "--data", first, "--output", backup)
	if code != 0 || !strings.Contains(stdout, backup+": 24 KiB (buckets: 2, entities and limits: 1,") || !strings.Contains(stdout, "checked") {
		t.Fatalf("backup: exit code %d\n%s%s", code, stdout, stderr)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: it holds secrets", info.Mode(), err)
	}
	r.remaining(t, "ada")
	r.end(t)

	second := filepath.Join(dir, "second")
	if code, stdout, stderr := output(t, "restore", "--data", second, backup); code != 0 || !strings.Contains(stdout, second+" holds "+backup) {
		t.Fatalf("restore: exit code %d\n%s%s", code, stdout, stderr)
	}
	r = start(t, "--config", file, "--data", second)
	if got := r.remaining(t, "ada"); got > 89 || got < 89-100/4 {
		t.Errorf("ada has %d left, want 89 at most, and no less than a block of it", got)
	}
	if got := r.remaining(t, "bob"); got > 5 || got < 5-7/4-1 {
		t.Errorf("bob has %d left, want 5 at most, by the stored limit", got)
	}
	r.end(t)
}

// A backup is restored into a running service: the stored state is the backup's, and no
// entity gains tokens.
func TestRestoreIntoARunningService(t *testing.T) {
	file, dir := programtest.WriteFile(t, "c.yaml", hundredPerDay), t.TempDir()
	first := filepath.Join(dir, "first")
	storeLimit(t, first, "user/bob", limiter.PerDay("rpm", 7))
	r := start(t, "--config", file, "--data", first)
	for range 30 {
		r.remaining(t, "ada")
	}
	backup := filepath.Join(dir, "b")
	if code, _, stderr := output(t, "backup", "--data", first, "--output", backup); code != 0 {
		t.Fatal(stderr)
	}
	r.end(t)

	second := filepath.Join(dir, "second")
	r = start(t, "--config", file, "--data", second)
	if got := r.remaining(t, "bob"); got != 99 {
		t.Fatalf("bob has %d left, want 99, by the file", got)
	}
	r.remaining(t, "ada")
	if code, stdout, stderr := output(t, "restore", "--server", "unix://"+filepath.Join(second, "admin.sock"), backup); code != 0 || !strings.Contains(stdout, "the lower of") {
		t.Fatalf("restore: exit code %d\n%s%s", code, stdout, stderr)
	}
	ada, bob := r.remaining(t, "ada"), r.remaining(t, "bob")
	if ada > 69 || bob > 6 {
		t.Errorf("ada has %d left and bob %d, want 69 and 6 at most", ada, bob)
	}
	r.end(t)
	r = start(t, "--config", file, "--data", second)
	if a, b := r.remaining(t, "ada"), r.remaining(t, "bob"); a != ada-1 || b != bob-1 {
		t.Errorf("in its next life ada has %d left and bob %d, want %d and %d", a, b, ada-1, bob-1)
	}
	r.end(t)
}

// storeLimit stores a limit of an entity in a directory.
func storeLimit(t *testing.T, dir, entity string, l limiter.Limit) {
	t.Helper()
	cfg := programtest.Parsed(t, hundredPerDay)
	cfg.Store.Embedded.Data = dir
	s, err := server.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	limits, err := limiter.NewLimits(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Store.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.EntityLimitsRef(entity, limiter.DefaultResource), limiter.Record{Limits: limits}); err != nil {
		t.Fatal(err)
	}
}

// Both commands speak TLS, and show a certificate to a service that wants one.
func TestBackupOverTLS(t *testing.T) {
	dir := t.TempDir()
	server, client := programtest.NewIdentity(t, dir, "server"), programtest.NewIdentity(t, dir, "client")
	file := programtest.WriteFile(t, "c.yaml", fmt.Sprintf("server: {admin: {address: '127.0.0.1:0', tls: {cert: %q, key: %q, client_ca: %q}}}", server.Cert, server.Key, client.Cert)+hundredPerDay)
	r := start(t, "--config", file, "--data", filepath.Join(dir, "data"))
	backup := filepath.Join(dir, "b")
	for _, test := range []struct {
		name  string
		flags []string
		code  int
	}{
		{"nobody to trust", nil, 1},
		{"no certificate to show", []string{"--ca", server.Cert}, 1},
		{"both", []string{"--ca", server.Cert, "--cert", client.Cert, "--key", client.Key}, 0},
	} {
		args := append([]string{"backup", "--server", r.adminURL(t), "--output", backup}, test.flags...)
		if code, _, stderr := output(t, args...); code != test.code {
			t.Errorf("backup, %s: exit code %d, want %d\n%s", test.name, code, test.code, stderr)
		}
	}
	if code, _, stderr := output(t, "restore", "--server", r.adminURL(t), "--ca", server.Cert, "--cert", client.Cert, "--key", client.Key, backup); code != 0 {
		t.Errorf("restore: exit code %d\n%s", code, stderr)
	}
}

func TestBackupsThatFail(t *testing.T) {
	file, dir := programtest.WriteFile(t, "c.yaml", hundredPerDay), t.TempDir()
	memory := start(t, "--config", file)
	data := filepath.Join(dir, "data")
	start(t, "--config", file, "--data", data)
	good, cut := filepath.Join(dir, "good"), filepath.Join(dir, "cut")
	if code, _, stderr := output(t, "backup", "--data", data, "-o", good); code != 0 {
		t.Fatal(stderr)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)-4096], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"of memory", []string{"backup", "--server", memory.adminURL(t), "-o", filepath.Join(dir, "x")}, 1, "has no data file to copy: it would need serve --data DIR"},
		{"of nobody", []string{"backup", "--server", "http://127.0.0.1:1", "-o", filepath.Join(dir, "x")}, 3, "asking the service"},
		{"to nowhere", []string{"backup", "--data", data, "-o", filepath.Join(dir, "no", "x")}, 1, "--output: "},
		{"with half a certificate", []string{"backup", "--data", data, "--cert", good, "-o", filepath.Join(dir, "x")}, 2, "--cert and --key belong together"},
		{"by the public listener", []string{"backup", "--server", memory.http, "-o", filepath.Join(dir, "x")}, 1, "404 Not Found: administration is on a listener of its own"},
		{"of a directory without a service", []string{"backup", "--data", dir, "-o", filepath.Join(dir, "x")}, 3, "admin.sock: start it"},
		{"restore to both", []string{"restore", "--data", dir, "--server", "unix:///x", good}, 2, "--data DIR"},
		{"restore nothing", []string{"restore", "--data", filepath.Join(dir, "new")}, 2, "one FILE"},
		{"restore what is not there", []string{"restore", "--data", filepath.Join(dir, "new"), filepath.Join(dir, "none")}, 1, "no such file"},
		{"restore what was cut", []string{"restore", "--data", filepath.Join(dir, "new"), cut}, 1, "the backup cannot be restored: " + cut + " is damaged: "},
		{"restore to memory", []string{"restore", "--server", memory.adminURL(t), good}, 1, "has no data file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, stderr := output(t, test.args...)
			if code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, want %d; stderr lacks %q:\n%s", code, test.code, test.want, stderr)
			}
		})
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if hidden, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(names) != 3 || len(hidden) != 0 {
		t.Errorf("there are %v and %v, %v; want the data, the backup and the cut backup", names, hidden, err)
	}
}
