package embedded

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A file is written again when it is large and most of it is free, and not too often.
func TestCompaction(t *testing.T) {
	s, err := Open(t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context()) //nolint:errcheck // checked by other tests
	c := &compaction{file: s.disk.file, log: s.cfg.Logger}
	// fill makes a file of so many MiB, of which so many are in use.
	fill := func(size, used int) {
		t.Helper()
		for i := range size {
			key := fmt.Appendf(nil, "%04d", i)
			if err := s.disk.file.Update(func(tx *datafile.Tx) error { return tx.Put(datafile.Audit, key, make([]byte, 1<<20)) }); err != nil {
				t.Fatal(err)
			}
		}
		for i := used; i < size; i++ {
			key := fmt.Appendf(nil, "%04d", i)
			if err := s.disk.file.Update(func(tx *datafile.Tx) error { return tx.Delete(datafile.Audit, key) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name       string
		size, used int
		after      time.Duration
		want       bool
	}{
		{"a small file", 6, 0, time.Hour, false},
		{"a file in use", 24, 16, 2 * time.Hour, false},
		{"a file that is mostly free", 24, 4, 3 * time.Hour, true},
		{"one so soon after", 24, 4, 3*time.Hour + compactPause - 1, false},
		{"the same later", 24, 4, 3*time.Hour + compactPause, true},
	} {
		fill(step.size, step.used)
		before := s.Stats()
		c.run(nil, t0.Add(step.after))
		after := s.Stats()
		if got := after.Bytes < before.Bytes; got != step.want {
			t.Errorf("%s: compacted is %t, want %t: %d of %d bytes free before, %d of %d after",
				step.name, got, step.want, before.FreeBytes, before.Bytes, after.FreeBytes, after.Bytes)
		}
		if got := after.Records[datafile.Audit]; got != uint64(step.used) {
			t.Errorf("%s: %d records, want %d", step.name, got, step.used)
		}
	}
}

// Takes within a block continue while the file accepts no changes, as during a compaction.
func TestCoveredDecisionsDoNotWaitForTheFile(t *testing.T) {
	s, err := Open(t.TempDir(), Config{Now: func() time.Time { return t0 }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context()) //nolint:errcheck // checked by other tests
	limits := limitsOf(t, limiter.PerHour("rpm", 100))
	mustTake(t, s, t0, true, opOf("hot", limits, 1))
	if err := s.disk.ask().wait(t.Context()); err != nil { // the block that the take has requested
		t.Fatal(err)
	}
	busy, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.disk.file.Update(func(*datafile.Tx) error {
			close(busy)
			<-release
			return nil
		})
	}()
	<-busy
	mustTake(t, s, t0, true, opOf("hot", limits, 1))
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A stop does not wait for a compaction: the file is unchanged.
func TestCompactionEndsWithAStop(t *testing.T) {
	_, d := openStill(t, t.TempDir(), Config{})
	if err := d.file.Update(func(tx *datafile.Tx) error {
		for i := range 12 {
			if err := tx.Put(datafile.Audit, fmt.Append(nil, i), make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	before := d.file.Stats()
	if err := d.file.Compact(stop); !errors.Is(err, datafile.ErrClosed) {
		t.Errorf("stopped: %v, want ErrClosed", err)
	}
	if after := d.file.Stats(); after.Bytes != before.Bytes || after.Records[datafile.Audit] != 12 {
		t.Errorf("the file has %d bytes and %d records, want %d and 12", after.Bytes, after.Records[datafile.Audit], before.Bytes)
	}
	if err := d.file.Compact(nil); err != nil {
		t.Error(err)
	}
}
