package config

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestPollFindsChangesWithoutEvents watches where the system tells nothing.
func TestPollFindsChangesWithoutEvents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ratelimit.yaml")
	save := func(data string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("drain: 1s\n")
	current, err := Load(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got time.Duration
	w := &watcher{
		fsys: host{}, main: file, last: current.Hash, started: &current.origin,
		options: Options{Poll: time.Millisecond, Debounce: time.Millisecond},
		apply: func(c *Config, err error) {
			if err == nil && c.Drain == 2*time.Second { // else it is half-written
				got = c.Drain
				cancel()
			}
		},
	}
	save("drain: 2s\n")
	w.run(ctx)
	if got != 2*time.Second {
		t.Errorf("the change was not delivered")
	}
}

// vanishing is the file system of the machine, where a file goes between the
// moment it is found and the moment it is read, as long as gone is set.
type vanishing struct {
	host

	name string
	gone *atomic.Bool
}

func (v vanishing) Open(name string) (fs.File, error) {
	if name == v.name && v.gone.Load() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return v.host.Open(name)
}

// TestVanishingFile loses an included file in the middle of a reload: that is an
// error, not a configuration without the file's domain.
func TestVanishingFile(t *testing.T) {
	dir := t.TempDir()
	file, rules := filepath.Join(dir, "ratelimit.yaml"), filepath.Join(dir, "rules.yaml")
	for name, data := range map[string]string{file: "include: [{path: 'rules*.yaml'}]\n", rules: "domain: api\n"} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var gone atomic.Bool
	var errs []string
	var hashes []string
	w := &watcher{fsys: vanishing{name: rules, gone: &gone}, main: file, apply: func(c *Config, err error) {
		if err != nil {
			errs = append(errs, err.Error())
			return
		}
		hashes = append(hashes, c.Hash)
	}}
	w.load()
	hash := w.last
	gone.Store(true)
	w.reload()
	w.reload() // reported once
	gone.Store(false)
	w.reload()
	want := file + ":1: include[0].path: " + rules + " does not exist"
	if len(errs) != 1 || errs[0] != want {
		t.Errorf("errors %q, want %q", errs, want)
	}
	if len(hashes) != 1 || hashes[0] != hash {
		t.Errorf("afterwards the configurations %v were delivered, want %v", hashes, hash)
	}
}
