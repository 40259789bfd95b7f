package datafile

import (
	"errors"
	"io"
	"maps"
	"os"
	"syscall"
	"testing"
)

// A failed fsync leaves the state of the disk open. The test makes it fail by a device, in place of
// the file, that accepts all writes and cannot sync.
func TestAFailedSyncEndsEverything(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	put(t, f, Buckets, "k", "before")
	want := mustDump(t, f)

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // nothing is in it
	fd := int(f.current.Load().file.Fd())
	saved, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Dup3(int(null.Fd()), fd, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	change := func(tx *Tx) error { return tx.Put(Buckets, []byte("k"), []byte("after")) }
	if err := f.Update(change); !errors.Is(err, ErrUncertain) || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Update: %v, want ErrUncertain and its cause", err)
	}
	if err := syscall.Dup3(saved, fd, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(saved); err != nil {
		t.Fatal(err)
	}
	_, copyErr := f.WriteTo(io.Discard)
	for name, err := range map[string]error{
		"Update": f.Update(change), "View": f.View(func(*Tx) error { return nil }), "WriteTo": copyErr, "Compact": f.Compact(nil),
	} {
		if !errors.Is(err, ErrUncertain) {
			t.Errorf("%s afterwards: %v, want ErrUncertain", name, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustDump(t, open(t, dir)); !maps.Equal(got, want) {
		t.Errorf("opened again: %v, want %v", got, want)
	}
}
