package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// durably starts a service with a data directory, which it returns.
func durably(t *testing.T) (data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	start(t, "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay), "--data", data)
	return data
}

// whole requires that a backup verifies.
func whole(t *testing.T, path string) {
	t.Helper()
	if _, err := datafile.Verify(path); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// names returns the names of a directory's files.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// With - the backup is on the standard output, alone and whole, and nowhere else.
func TestBackupToStandardOutput(t *testing.T) {
	data, temporary := durably(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Chdir(t.TempDir())
	for _, tmp := range []string{temporary, filepath.Join(temporary, "none")} { // as in an image without one
		t.Setenv("TMPDIR", tmp)
		code, stdout, stderr := output(t, "backup", "--data", data, "--output", "-")
		if code != 0 || !strings.Contains(stderr, "standard output: 24 KiB (buckets: 0") || !strings.Contains(stderr, "checked") {
			t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
		}
		whole(t, programtest.WriteFile(t, "b", stdout))
	}
	if got := names(t, "."); len(got) != 0 {
		t.Errorf("the working directory has %v", got)
	}
	if got := names(t, temporary); len(got) != 0 {
		t.Errorf("the directory for temporary files has %v", got)
	}
	if got := names(t, data); strings.Contains(strings.Join(got, " "), ".backup") {
		t.Errorf("the data directory has %v", got)
	}
}

// A backup that is cut off, or is none, reaches neither the standard output nor a
// file.
func TestBackupThatIsNotWhole(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", admin.BackupType)
		_, _ = w.Write(make([]byte, 24<<10))
	}))
	defer server.Close()
	if err := os.WriteFile("there", []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"-", "new", "there"} {
		code, stdout, stderr := output(t, "backup", "--server", server.URL, "--output", to)
		if code != command.ExitFailure || stdout != "" || !strings.Contains(stderr, "no whole backup") {
			t.Errorf("to %s: exit code %d, %d bytes, stderr:\n%s", to, code, len(stdout), stderr)
		}
	}
	if text, err := os.ReadFile("there"); err != nil || string(text) != "before" {
		t.Errorf("the file before holds %q, %v", text, err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("there are %v, want the file before alone", got)
	}
}

// A link is followed: the file that it leads to is replaced, or made, and the link stays.
func TestBackupFollowsLinks(t *testing.T) {
	data, dir := durably(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(at("far"), 0o700), os.WriteFile(at("far/old"), []byte("old"), 0o600),
		os.Symlink("far", at("near")), os.Symlink("near/../far/old", at("relative")), os.Symlink(at("relative"), at("chain")),
		os.Symlink("far/new", at("dangling")), os.Symlink("circle", at("circle")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for link, file := range map[string]string{"relative": "far/old", "chain": "far/old", "dangling": "far/new"} {
		before, err := os.Readlink(at(link))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at("far/old"), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := output(t, "backup", "--data", data, "-o", at(link)); code != 0 || !strings.HasPrefix(stdout, at(link)+": ") {
			t.Fatalf("%s: exit code %d\n%s%s", link, code, stdout, stderr)
		}
		whole(t, at(file))
		if after, err := os.Readlink(at(link)); err != nil || after != before {
			t.Errorf("%s leads to %q now, %v; want %q", link, after, err, before)
		}
	}
	if code, _, stderr := output(t, "backup", "--data", data, "-o", at("circle")); code != command.ExitFailure || !strings.Contains(stderr, "links") {
		t.Errorf("a circle: exit code %d, stderr:\n%s", code, stderr)
	}
	if got := names(t, at("far")); len(got) != 2 {
		t.Errorf("there are %v, want the old and the new file", got)
	}
}

// A target that is no regular file, or the file of a data directory, is refused, and stays as it was.
func TestBackupTargetsThatAreRefused(t *testing.T) {
	data, dir := durably(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		syscall.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("dir"), 0o700), os.Symlink("fifo", at("other")), os.Symlink("dir", at("link")),
		os.Symlink(filepath.Join(data, "ratelimit.db"), at("live")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const irregular, live = ", and no regular file; - is the standard output", "is the file of a data directory, which a service may have open: name another file"
	for path, want := range map[string]string{
		at("fifo"): "is a FIFO" + irregular, at("dir"): "is a directory" + irregular, at("other"): "is a FIFO" + irregular, at("link"): "is a directory" + irregular,
		filepath.Join(data, "admin.sock"): "is a socket" + irregular, filepath.Join(data, "ratelimit.db"): live, at("live"): live,
	} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := output(t, "backup", "--data", data, "-o", path)
		if code != command.ExitFailure || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, stderr lacks %q:\n%s", path, code, want, stderr)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
			t.Errorf("%s is another now: %v, %v", path, after, err)
		}
	}
	if got := names(t, dir); len(got) != 5 {
		t.Errorf("there are %v, want the files of before", got)
	}
}
