package datafile

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// fill puts n records of about 120 bytes, in random order.
func fill(f *File, n int) error {
	const step = 20_000
	for from := 0; from < n; from += step {
		err := f.Update(func(tx *Tx) error {
			for i := from; i < min(from+step, n); i++ {
				if err := tx.Put(Buckets, benchKey(i), make([]byte, 100)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func benchKey(i int) []byte {
	return fmt.Appendf(binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15), "/key/%06d", i)
}

// BenchmarkUpdate shows the cost of a group commit: the sync is shared.
func BenchmarkUpdate(b *testing.B) {
	for _, puts := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("puts=%d", puts), func(b *testing.B) {
			f, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // the directory is removed
			const records = 100_000
			if err := fill(f, records); err != nil {
				b.Fatal(err)
			}
			next := 0
			for b.Loop() {
				err := f.Update(func(tx *Tx) error {
					for range puts {
						next = (next + 1) % records
						if err := tx.Put(Buckets, benchKey(next), make([]byte, 100)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*puts), "µs/put")
		})
	}
}

// BenchmarkOpen opens a file of a million records, all of it read and checked, and
// compacts one.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	f, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := fill(f, 1_000_000); err != nil {
		b.Fatal(err)
	}
	b.Run("compact", func(b *testing.B) {
		for b.Loop() {
			if err := f.Compact(nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			f, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(f.Stats().Bytes>>20), "MiB")
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
