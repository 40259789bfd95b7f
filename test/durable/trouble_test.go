package durable_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// refused requires the program to end with an error that has all these texts, without
// having answered any call.
func refused(t *testing.T, p *program, says ...string) {
	t.Helper()
	if err := p.wait(t); err == nil || p.exitCode() != 1 {
		t.Errorf("it ended with %v, want exit code 1", err)
	}
	for _, text := range says {
		if !strings.Contains(p.wrote(), text) {
			t.Errorf("it does not say %q:\n%s", text, p.wrote())
		}
	}
	select {
	case <-p.ready:
		t.Error("it answered")
	default:
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	h := newHistory()
	dir, config := t.TempDir(), configuration(t, rules)
	first := start(t, dir, config)
	refused(t, launch(t, dir, config), dir, fmt.Sprintf("is open in process %d", first.cmd.Process.Pid))
	c, end := h.dial(t, first)
	c.take(t.Context(), "small", "u", 1, map[string]int64{"n": 1})
	end()
	if len(h.given["small/u n"]) != 1 {
		t.Error("the first process does not go on")
	}
	first.kill()
	start(t, dir, config)
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	dir, config := t.TempDir(), configuration(t, rules)
	for path, mode := range map[string]os.FileMode{dir: 0o555, filepath.Dir(dir): 0o755, filepath.Dir(config): 0o755, filepath.Dir(filepath.Dir(config)): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) // so that it can be removed
	unprivileged := func(cmd *exec.Cmd) {
		if os.Geteuid() == 0 { // root may write everywhere
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
	}
	refused(t, launch(t, dir, config, unprivileged), dir, "cannot be written by user")
}

// damages are things that happen to files.
var damages = []struct {
	name   string
	damage func(file []byte) []byte
}{
	{"empty", func([]byte) []byte { return nil }},
	{"half", func(file []byte) []byte { return file[:len(file)/2] }},
	{"without its last bytes", func(file []byte) []byte { return file[:len(file)-100] }},
	{"zeroed at the begin", func(file []byte) []byte { return append(make([]byte, 8192), file[8192:]...) }},
	{"one bit of a bucket", func(file []byte) []byte {
		for at := 0; ; at++ { // in every copy of it that there is
			i := bytes.Index(file[at:], []byte("ledger/l"))
			if i < 0 {
				return file
			}
			at += i
			file[at+7] ^= 1
		}
	}},
	{"another file", func([]byte) []byte { return []byte(rules) }},
}

// A file that is damaged is not used, in no part: neither is it mended, nor do full
// buckets take its place.
func TestDamagedFileIsRefused(t *testing.T) {
	h := newHistory()
	dir, config := t.TempDir(), configuration(t, rules)
	p := start(t, dir, config)
	c, end := h.dial(t, p)
	c.take(t.Context(), "ledger", "l", 5_000_000, map[string]int64{"n": 5_000_000})
	end()
	p.kill()
	path := filepath.Join(dir, "ratelimit.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range damages {
		damaged := d.damage(bytes.Clone(whole))
		if bytes.Equal(damaged, whole) {
			t.Fatalf("%s: nothing is damaged", d.name)
		}
		write(t, path, damaged)
		t.Run(d.name, func(t *testing.T) {
			refused(t, launch(t, dir, config), path, "is damaged", "ratelimit restore")
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	write(t, path, whole)
	if got := start(t, dir, config).balance(t, "ledger", "l", "n"); got > 5_000_000.01 {
		t.Errorf("the file as it was: got %v left, want 5000000 at most", got)
	}
}

func write(t *testing.T, path string, file []byte) {
	t.Helper()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}
