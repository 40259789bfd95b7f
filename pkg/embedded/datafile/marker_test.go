package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made returns a directory in which a file was created and closed.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f := open(t, dir)
	put(t, f, Meta, "k", "v")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestMissingFileIsNoNewOne(t *testing.T) {
	dir := made(t)
	remove(t, dir, fileName)
	for range 2 {
		_, err := Open(dir, Options{})
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), filepath.Join(dir, markerName)) || !strings.Contains(err.Error(), adviceRestore) {
			t.Fatalf("without the file: %v, want ErrMissing, and how to go on", err)
		}
	}
	f, err := Open(dir, Options{New: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustDump(t, f); len(got) != 0 {
		t.Errorf("a new file has %v", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, fileName)
	remove(t, dir, markerName)
	open(t, dir)
}

// A file without a marker gets one when it is opened, and a backup replaces a missing
// file.
func TestMarkerFollowsTheFile(t *testing.T) {
	dir := made(t)
	remove(t, dir, markerName)
	f := open(t, dir)
	var backup bytes.Buffer
	if _, err := f.WriteTo(&backup); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, fileName)
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrMissing) {
		t.Fatalf("a file that was marked when it was opened, removed: %v, want ErrMissing", err)
	}
	if err := Restore(dir, &backup); err != nil {
		t.Fatal(err)
	}
	if got := mustDump(t, open(t, dir))["meta/k"]; got != "v" {
		t.Errorf("after the restore: %q, want v", got)
	}
}

// create opens a directory, and prints the result.
func create(dir string) error {
	fmt.Println("begin")
	f, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	return f.Update(func(tx *Tx) error { return tx.Put(Meta, []byte("k"), []byte("v")) })
}

// After a first start that was killed at any step, the next start succeeds.
func TestKillWhileCreating(t *testing.T) {
	t.Parallel()
	r := random(t)
	states := make(map[string]int)
	for range 40 {
		dir := t.TempDir()
		cmd, lines := start(t, "create", dir)
		if !lines.Scan() {
			t.Fatal("the process did not begin")
		}
		for range r.IntN(20_000) { // anywhere in the next steps
			_ = os.Getppid()
		}
		kill(t, cmd)
		var state []string
		for _, name := range []string{newName, fileName, markerName} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				state = append(state, name)
			}
		}
		states[fmt.Sprint(state)]++
		f, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("killed with %v in the directory: %v", state, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("killed with %v in the directory", states)
}

// The steps of the first start in order, each with a kill after it.
func TestEveryStateOfTheFirstStartOpens(t *testing.T) {
	whole := made(t)
	for _, state := range [][]string{nil, {newName}, {fileName}, {fileName, newName}, {fileName, markerName}, {fileName, markerName, pidName}} {
		dir := t.TempDir()
		for _, name := range state {
			data, err := os.ReadFile(filepath.Join(whole, fileName))
			if name != fileName {
				data = nil
			}
			if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		f := open(t, dir)
		if _, err := os.Stat(filepath.Join(dir, markerName)); err != nil {
			t.Errorf("opened with %v in the directory: %v", state, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFileThatIsGone(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"removed":           func(dir string) error { return os.Remove(filepath.Join(dir, fileName)) },
		"moved":             func(dir string) error { return os.Rename(filepath.Join(dir, fileName), filepath.Join(dir, "other")) },
		"directory moved":   func(dir string) error { return os.Rename(dir, dir+".moved") },
		"directory removed": os.RemoveAll,
		"replaced": func(dir string) error {
			path := filepath.Join(dir, fileName)
			data, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path+".x", data, 0o600), os.Rename(path+".x", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			f := open(t, dir)
			if err := f.Present(); err != nil {
				t.Fatalf("a file in its place: %v", err)
			}
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			if err := f.Present(); !errors.Is(err, ErrGone) {
				t.Errorf("got %v, want ErrGone", err)
			}
			put(t, f, Meta, "k", "v")
			if got := mustDump(t, f)["meta/k"]; got != "v" {
				t.Errorf("it does not go on: %q", got)
			}
		})
	}
	f := open(t, t.TempDir())
	if err := errors.Join(f.Compact(nil), f.Present()); err != nil {
		t.Errorf("after Compact, which replaces the file: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Present(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
}

// A process whose directory was moved away leaves the files of the next process alone.
func TestMovedDirectoryLeavesTheNextOneAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := open(t, dir)
	put(t, first, Meta, "by", "first")
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	put(t, second, Meta, "by", "second")
	if err := first.Compact(nil); !errors.Is(err, ErrGone) {
		t.Errorf("Compact in the directory of another: %v, want ErrGone", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, pidName)); err != nil {
		t.Errorf("the process id of the second: %v", err)
	}
	if err := second.Present(); err != nil {
		t.Error(err)
	}
	if got := mustDump(t, second)["meta/by"]; got != "second" {
		t.Errorf("the second's file has %q", got)
	}
}

// An older copy of the file is refused in place of the newer one. Restore accepts it.
func TestOlderFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	f := open(t, dir)
	put(t, f, Meta, "k", "old")
	older := backup(t, f)
	put(t, f, Meta, "k", "new")
	if err := errors.Join(f.Compact(nil), f.Close(), os.WriteFile(path, older, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{false, true} {
		if _, err := Open(dir, Options{ReadOnly: readOnly}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("an older file, read-only %t: %v, want ErrCorrupt", readOnly, err)
		}
	}
	if _, err := Verify(path); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Verify of an older file: %v, want ErrCorrupt", err)
	}
	if err := Restore(dir, bytes.NewReader(older)); err != nil {
		t.Fatal(err)
	}
	f = open(t, dir)
	if got := mustDump(t, f)["meta/k"]; got != "old" {
		t.Errorf("after a restore: %q, want old", got)
	}
	if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir, Options{New: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}
