package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// open opens dir, and closes it at the end of the test.
func open(t *testing.T, dir string) *File {
	t.Helper()
	f, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return f
}

func update(t *testing.T, f *File, fn func(*Tx) error) {
	t.Helper()
	if err := f.Update(fn); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, f *File, table Table, key, value string) {
	t.Helper()
	update(t, f, func(tx *Tx) error { return tx.Put(table, []byte(key), []byte(value)) })
}

// dump returns all records, by table and key.
func dump(f *File) (map[string]string, error) {
	all := make(map[string]string)
	err := f.View(func(tx *Tx) error {
		for _, t := range tables() {
			if err := tx.Each(t, nil, func(k, v []byte) error {
				all[string(t)+"/"+string(k)] = string(v)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func mustDump(t *testing.T, f *File) map[string]string {
	t.Helper()
	all, err := dump(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatIsPutIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	f := open(t, dir)
	put(t, f, Buckets, "a", "one")
	put(t, f, Buckets, "ab", "")
	put(t, f, Meta, "a", "other")
	put(t, f, Buckets, "b", "two")
	put(t, f, Buckets, "a", "three")
	update(t, f, func(tx *Tx) error {
		return errors.Join(tx.Delete(Buckets, []byte("b")), tx.Delete(Audit, []byte("none")))
	})
	failure := errors.New("changed my mind")
	if err := f.Update(func(tx *Tx) error {
		return errors.Join(tx.Put(Buckets, []byte("c"), []byte("x")), failure)
	}); !errors.Is(err, failure) {
		t.Errorf("Update of a function that fails: %v, want its error", err)
	}

	want := map[string]string{"buckets/a": "three", "buckets/ab": "", "meta/a": "other"}
	if diff := cmp.Diff(want, mustDump(t, f)); diff != "" {
		t.Errorf("before closing (-want +got):\n%s", diff)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, mustDump(t, open(t, dir))); diff != "" {
		t.Errorf("after opening again (-want +got):\n%s", diff)
	}
}

// A function that panics changes nothing, and the file is still usable.
func TestAPanicOfACallerPassesThrough(t *testing.T) {
	f := open(t, t.TempDir())
	panics := func(tx *Tx) error {
		_ = tx.Put(Meta, []byte("k"), []byte("v")) // an error in a View
		panic("of the caller")
	}
	for name, transaction := range map[string]func(func(*Tx) error) error{"Update": f.Update, "View": f.View} {
		func() {
			defer func() {
				if got := recover(); got != "of the caller" {
					t.Errorf("%s: recovered %v, want the caller's panic", name, got)
				}
			}()
			_ = transaction(panics)
		}()
	}
	put(t, f, Meta, "later", "v")
	if diff := cmp.Diff(map[string]string{"meta/later": "v"}, mustDump(t, f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongKeysAndTables(t *testing.T) {
	f := open(t, t.TempDir())
	put(t, f, Meta, "k", "v")
	for name, change := range map[string]func(*Tx) error{
		"no key":         func(tx *Tx) error { return tx.Put(Meta, nil, []byte("v")) },
		"key too long":   func(tx *Tx) error { return tx.Put(Meta, make([]byte, 32_769), []byte("v")) },
		"no table":       func(tx *Tx) error { return tx.Put("other", []byte("k"), nil) },
		"reserved table": func(tx *Tx) error { return tx.Delete(reserved, stateKey()) },
	} {
		// The function does not return the error, and nothing may have changed.
		err := f.Update(func(tx *Tx) error {
			if err := change(tx); err == nil {
				t.Errorf("%s: no error", name)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: the transaction failed: %v", name, err)
		}
	}
	if err := f.View(func(tx *Tx) error { return tx.Put(Meta, []byte("k"), nil) }); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Put in a View: %v, want ErrReadOnly", err)
	}
	dir := f.dir
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("Close again: %v, want ErrClosed", err)
	}
	if err := f.Update(func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("Update after Close: %v, want ErrClosed", err)
	}
	if diff := cmp.Diff(map[string]string{"meta/k": "v"}, mustDump(t, open(t, dir))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGet(t *testing.T) {
	f := open(t, t.TempDir())
	put(t, f, Usage, "empty", "")
	if err := f.View(func(tx *Tx) error {
		if got := tx.Get(Usage, []byte("empty")); got == nil || len(got) != 0 {
			t.Errorf("an empty value: %v, want an empty slice", got)
		}
		if got := tx.Get(Usage, []byte("none")); got != nil {
			t.Errorf("no value: %v, want nil", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.View(func(tx *Tx) error { _ = tx.Get("bukets", []byte("a")); return nil }); err == nil {
		t.Error("View that read a table that does not exist: no error")
	}
}

func TestEachHasAPrefixAndAnOrder(t *testing.T) {
	f := open(t, t.TempDir())
	for _, k := range []string{"b/2", "a", "b/1", "c", "b/", "b"} {
		put(t, f, Records, k, "v"+k)
	}
	var got []string
	if err := f.View(func(tx *Tx) error {
		return tx.Each(Records, []byte("b/"), func(k, v []byte) error {
			got = append(got, fmt.Sprintf("%s=%s", k, v))
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b/=vb/", "b/1=vb/1", "b/2=vb/2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A copy has the same state in both of its meta pages: one of them is enough.
func TestACopyIsAWholeFile(t *testing.T) {
	f := open(t, t.TempDir())
	put(t, f, Records, "k", "v")
	var backup bytes.Buffer
	if _, err := f.WriteTo(&backup); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"nothing", "state 0", "state 1"} {
		image := bytes.Clone(backup.Bytes())
		switch lost {
		case "state 0":
			clear(image[pageHeader:pageSize])
		case "state 1":
			clear(image[pageSize+pageHeader : 2*pageSize])
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), image, 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			got := open(t, dir)
			put(t, got, Records, "k2", "v2")
			if diff := cmp.Diff(map[string]string{"records/k": "v", "records/k2": "v2"}, mustDump(t, got)); diff != "" {
				t.Errorf("without %s, opened %d times (-want +got):\n%s", lost, i+1, diff)
			}
			if err := got.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
