package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func backup(t *testing.T, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := f.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo: %d of %d bytes, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// Each commit raises the same number under many keys, so that a copy that mixed two
// states would show two numbers.
func TestCopyWhileOthersWrite(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	count := func(n int) func(*Tx) error {
		return func(tx *Tx) error {
			for i := range 200 {
				if err := tx.Put(tables()[i%tableCount], fmt.Append(nil, i), fmt.Append(nil, n)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	update(t, f, count(0))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	var failure error
	writer.Go(func() {
		for n := 1; failure == nil; n++ {
			select {
			case <-stop:
				return
			default:
				failure = f.Update(count(n))
			}
		}
	})
	b := bench{dir: memory(t)}
	for i := range 40 {
		before := f.Stats().Commits
		image := backup(t, f)
		after := f.Stats().Commits
		got, err := b.open(t, image, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := got["meta/6"]
		for k, v := range got {
			if v != n {
				t.Fatalf("copy %d mixes %s = %s with %s", i, k, v, n)
			}
		}
		// Commits counts the first one, of number 0, too.
		var number uint64
		if _, err := fmt.Sscan(n, &number); err != nil || len(got) != 200 || number+1 < before || number > after {
			t.Fatalf("copy %d: %d records of commit %q, want 200 between %d and %d", i, len(got), n, before, after)
		}
	}
	close(stop)
	writer.Wait()
	if failure != nil {
		t.Fatal(failure)
	}
}

func TestCompactShrinksAndKeepsAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, dir)
	for n := range 6 {
		update(t, f, func(tx *Tx) error {
			for i := range 5000 {
				if err := tx.Put(Buckets, fmt.Appendf(nil, "%d/%d", n, i), bytes.Repeat([]byte{byte(n)}, 300)); err != nil {
					return err
				}
			}
			return tx.Put(Settled, []byte("k"), fmt.Append(nil, n))
		})
	}
	update(t, f, func(tx *Tx) error {
		var err error
		for i := range 4 * 5000 {
			err = errors.Join(err, tx.Delete(Buckets, fmt.Appendf(nil, "%d/%d", i/5000, i%5000)))
		}
		return err
	})
	want, before := mustDump(t, f), f.Stats()
	if before.FreeBytes*2 < before.Bytes {
		t.Errorf("%d of %d bytes are free, want more than half", before.FreeBytes, before.Bytes)
	}

	// A reader of the old file continues; a later one sees the same.
	done := make(chan error, 1)
	err := f.View(func(tx *Tx) error {
		go func() { done <- f.Compact(nil) }()
		for { // until the new file is there
			if info, err := os.Stat(f.path()); err == nil && info.Size() < before.Bytes {
				break
			}
		}
		if got := tx.Get(Settled, []byte("k")); string(got) != "5" {
			t.Errorf("read while compacting: %q, want 5", got)
		}
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	after := f.Stats()
	if after.Bytes*2 > before.Bytes || after.FreeBytes*2 > after.Bytes {
		t.Errorf("after: %+v\nbefore: %+v\nwant half the size", after, before)
	}
	if diff := cmp.Diff(before.Records, after.Records); diff != "" {
		t.Errorf("records (-before +after):\n%s", diff)
	}
	put(t, f, Settled, "later", "v")
	want["settled/later"] = "v"
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustDump(t, open(t, dir)); !maps.Equal(got, want) {
		t.Errorf("opened again: %d records, want %d", len(got), len(want))
	}
}

func TestCompactWhileOthersWork(t *testing.T) {
	f := open(t, t.TempDir())
	var all sync.WaitGroup
	errs := make(chan error, 3)
	all.Go(func() {
		for i := range 200 {
			if err := f.Update(func(tx *Tx) error { return tx.Put(Usage, fmt.Append(nil, i), []byte("v")) }); err != nil {
				errs <- err
				return
			}
			err := f.View(func(tx *Tx) error {
				if tx.Get(Usage, fmt.Append(nil, i)) == nil {
					return fmt.Errorf("%d was written and is not there", i)
				}
				return nil
			})
			if err != nil {
				errs <- err
				return
			}
		}
	})
	all.Go(func() {
		for range 30 {
			if err := f.Compact(nil); err != nil {
				errs <- err
				return
			}
		}
	})
	all.Go(func() {
		for range 100 {
			if _, err := f.WriteTo(io.Discard); err != nil {
				errs <- err
				return
			}
			_ = f.Stats()
		}
	})
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got := f.Stats().Records[Usage]; got != 200 {
		t.Errorf("%d records, want 200", got)
	}
}

// A process that opens the directory during the replacement must not get the lock of the old file.
func TestOpenWhileCompacting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, dir)
	stop := make(chan struct{})
	var other sync.WaitGroup
	var tries int
	other.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			tries++
			if _, err := Open(dir, Options{}); !errors.As(err, new(*InUseError)) {
				t.Errorf("try %d: %v, want an *InUseError", tries, err)
				return
			}
		}
	})
	for range 150 {
		if err := f.Compact(nil); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	other.Wait()
	t.Logf("%d tries", tries)
}

func TestRestore(t *testing.T) {
	from := open(t, t.TempDir())
	put(t, from, Records, "k", "backup")
	good := backup(t, from)
	bad := bytes.Clone(good)
	for i := range bad { // the value, wherever it is
		if bytes.HasPrefix(bad[i:], []byte("backup")) {
			bad[i] ^= 1
		}
	}
	tests := []struct {
		name   string
		backup []byte
		err    error
	}{
		{"good", good, nil},
		{"wrong", bad, ErrCorrupt},
		{"truncated", good[:len(good)-pageSize], ErrCorrupt},
		{"truncated oddly", good[:len(good)-1], ErrCorrupt},
		{"empty", nil, ErrCorrupt},
	}
	for _, test := range tests {
		dir := t.TempDir()
		f := open(t, dir)
		put(t, f, Records, "k", "old")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(f.path())
		if err != nil {
			t.Fatal(err)
		}
		err = Restore(dir, bytes.NewReader(test.backup))
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", test.name, err, test.err)
		}
		kept, wantKept, want := others(t, dir), 0, "old"
		if test.err == nil {
			wantKept, want = 1, "backup"
		} else if !strings.Contains(err.Error(), dir+" is unchanged") {
			t.Errorf("%s: %q does not say that nothing happened", test.name, err)
		}
		if len(kept) != wantKept {
			t.Errorf("%s: also in the directory: %v, want %d files", test.name, kept, wantKept)
		}
		for _, path := range kept {
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, old) || !strings.HasSuffix(path, "Z") {
				t.Errorf("%s: %s is not the old file: %v", test.name, path, err)
			}
		}
		if got := mustDump(t, open(t, dir))["records/k"]; got != want {
			t.Errorf("%s: afterwards %q, want %q", test.name, got, want)
		}
	}
}

// others lists the files in dir that are not the data file.
func others(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range entries {
		if e.Name() != fileName && e.Name() != markerName {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// A restore replaces a damaged file, and creates the file of a new directory.
func TestRestoreOverNothingAndOverDamage(t *testing.T) {
	from := open(t, t.TempDir())
	put(t, from, Records, "k", "backup")
	good := backup(t, from)

	none := filepath.Join(t.TempDir(), "new")
	damage := t.TempDir()
	if err := os.WriteFile(filepath.Join(damage, fileName), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{none, damage} {
		if err := Restore(dir, bytes.NewReader(good)); err != nil {
			t.Fatal(err)
		}
		if got := mustDump(t, open(t, dir))["records/k"]; got != "backup" {
			t.Errorf("%s: %q, want the backup", dir, got)
		}
	}
	if err := Restore(none, bytes.NewReader(good)); !errors.As(err, new(*InUseError)) {
		t.Errorf("while it is open: %v, want an *InUseError", err)
	}
	failure := errors.New("the network is gone")
	if err := Restore(t.TempDir(), io.MultiReader(bytes.NewReader(good[:5000]), failingReader{failure})); !errors.Is(err, failure) {
		t.Errorf("a reader that fails: %v, want its error", err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestVerify(t *testing.T) {
	f := open(t, t.TempDir())
	put(t, f, Records, "k", "v")
	path := filepath.Join(t.TempDir(), "backup")
	image := backup(t, f)
	if err := os.WriteFile(path, image, 0o400); err != nil {
		t.Fatal(err)
	}
	got, err := Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Bytes: int64(len(image)), Records: map[Table]uint64{
		Buckets: 0, Records: 1, Audit: 0, Usage: 0, Namespaces: 0, Settled: 0, Meta: 0,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
