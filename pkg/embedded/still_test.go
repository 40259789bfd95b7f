package embedded

import (
	"context"
	"errors"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// openStill opens a store that writes and sweeps nothing by itself.
func openStill(tb testing.TB, dir string, cfg Config) (*Store, *disk) {
	tb.Helper()
	file, err := datafile.Open(dir, datafile.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := file.Close(); err != nil && !errors.Is(err, datafile.ErrClosed) {
			tb.Error(err)
		}
	})
	s := assemble(cfg.withDefaults(), file)
	if err := s.load(); err != nil {
		tb.Fatal(err)
	}
	return s, s.disk
}

// take takes the next batch, as the writer does.
func (d *disk) take() *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.next
	d.next = nil
	return n
}

// writeNext writes the next batch, if there is one, and reports whether there was.
func (d *disk) writeNext() bool {
	n := d.take()
	if n == nil {
		return false
	}
	d.commit(n)
	return true
}

// openTest opens a store that the test's end closes.
func openTest(tb testing.TB, dir string, cfg Config) *Store {
	tb.Helper()
	s, err := Open(dir, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// mustClose ends the writer.
func mustClose(t *testing.T, d *disk) {
	t.Helper()
	if err := d.close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func onlyBucket(t *testing.T, s *Store) *bucket {
	t.Helper()
	for i := range s.shards {
		for _, b := range s.shards[i].buckets {
			return b
		}
	}
	t.Fatal("no bucket")
	return nil
}
