package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// shortDir is a directory that other users can read.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "admin") //nolint:usetesting // which makes it in a directory that only this user can read
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// copyTo asks for a backup of a data directory, as a user, and returns the standard
// output and the standard error.
func copyTo(t *testing.T, data string, as *syscall.Credential) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv(envoytest.ProgramVariable), "backup", "--data", data, "--output", "-")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// The socket of administration answers its own user, and no other, although the data
// directory lets others in.
func TestSocketAnswersItsUser(t *testing.T) {
	dir := shortDir(t)
	start(t, dir, configuration(t, rules))
	socket := filepath.Join(dir, "admin.sock")
	if info, err := os.Lstat(socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v; want a socket with mode 0600", info.Mode(), err)
	}
	if stdout, stderr, err := copyTo(t, dir, nil); err != nil || len(stdout) == 0 || !strings.Contains(stderr, "checked") {
		t.Errorf("its own user got %d bytes, %v\n%s", len(stdout), err, stderr)
	}
	if os.Geteuid() != 0 {
		return // the mode is checked above; another user can be tried as root only
	}
	stdout, stderr, err := copyTo(t, dir, &syscall.Credential{Uid: 65534, Gid: 65534})
	if err == nil || stdout != "" || !strings.Contains(stderr, "is for the user of the service") {
		t.Errorf("another user got %d bytes, %v\n%s", len(stdout), err, stderr)
	}
}

// The socket goes with a process that is stopped. One that is killed leaves it, and the
// next has it again.
func TestSocketOutlivesNoProcess(t *testing.T) {
	dir, config := shortDir(t), configuration(t, rules)
	socket := filepath.Join(dir, "admin.sock")
	p := start(t, dir, config)
	p.kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("%v: this test is about the files of a killed process", err)
	}
	if _, stderr, err := copyTo(t, dir, nil); err == nil || !strings.Contains(stderr, "no service answers at "+socket) {
		t.Errorf("with nothing behind the socket: %v\n%s", err, stderr)
	}
	p = start(t, dir, config)
	if _, stderr, err := copyTo(t, dir, nil); err != nil {
		t.Errorf("of the next process: %v\n%s", err, stderr)
	}
	p.stop(t)
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after SIGTERM: %v, want no socket", err)
	}
}

// If two processes have one socket, the second does not start, and the first keeps
// it.
func TestTwoProcessesOneSocket(t *testing.T) {
	first, second, config := shortDir(t), shortDir(t), configuration(t, rules)
	start(t, first, config)
	address := "unix:" + filepath.Join(first, "admin.sock")
	p := launch(t, second, config, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "--admin-address", address) })
	if err := p.wait(t); err == nil || p.exitCode() != 1 || !strings.Contains(p.wrote(), "another process listens there") {
		t.Errorf("the second ended with %v\n%s", err, p.wrote())
	}
	if _, stderr, err := copyTo(t, first, nil); err != nil {
		t.Errorf("the first: %v\n%s", err, stderr)
	}
}
