package datafile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofFormat returns the file of a program of another format, with one record.
func ofFormat(t *testing.T, version byte) []byte {
	t.Helper()
	f := open(t, t.TempDir())
	put(t, f, Records, "k", "v")
	if err := f.Compact(nil); err != nil { // no page of an earlier state is left
		t.Fatal(err)
	}
	var s sealer
	was, is := s.seal(reserved, formatKey(), formatBytes()), s.seal(reserved, formatKey(), []byte{version, 0, 0, 0})
	image := backup(t, f)
	if bytes.Count(image, was) != 1 {
		t.Fatalf("the format is in the file %d times", bytes.Count(image, was))
	}
	return bytes.ReplaceAll(image, was, is)
}

// A file of an older format stays what it is until the first change, which makes it one of
// this format, or does not where it fails.
func TestTheFirstChangeRaisesTheFormat(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, ofFormat(t, formatVersion-1), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	refused := errors.New("refused")
	if err := f.Update(func(*Tx) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("a change that fails: %v", err)
	}
	steps := []struct {
		name   string
		change func() error
		format int
	}{
		{"opened", func() error { return nil }, formatVersion - 1},
		{"changed", func() error {
			return f.Update(func(tx *Tx) error { return tx.Put(Records, []byte("l"), []byte("w")) })
		}, formatVersion},
		{"compacted", func() error { return f.Compact(nil) }, formatVersion},
	}
	for _, step := range steps {
		if err := step.change(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(copied, backup(t, f), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Verify(copied); err != nil || got.Format != step.format {
			t.Errorf("%s: format %d, %v; want %d", step.name, got.Format, err, step.format)
		}
	}
	if diff := cmp.Diff(map[string]string{"records/k": "v", "records/l": "w"}, mustDump(t, f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A file of an older format that is compacted before any change is one of this format.
func TestCompactRaisesTheFormat(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), ofFormat(t, formatVersion-1), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	if err := f.Compact(nil); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(copied, backup(t, f), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(copied); err != nil || got.Format != formatVersion {
		t.Errorf("format %d, %v; want %d", got.Format, err, formatVersion)
	}
	put(t, f, Records, "l", "w")
	if diff := cmp.Diff(map[string]string{"records/k": "v", "records/l": "w"}, mustDump(t, f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
