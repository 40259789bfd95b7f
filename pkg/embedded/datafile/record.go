package datafile

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Table is a part of the file.
type Table string

// The tables of a file. All of them exist from the start.
const (
	Buckets    Table = "buckets"
	Records    Table = "records" // entities and limits
	Audit      Table = "audit"
	Usage      Table = "usage"
	Namespaces Table = "namespaces"
	Settled    Table = "settled" // marks
	Meta       Table = "meta"    // of the store that uses the file: secrets, generation
)

const (
	tableCount = 7
	// reserved is the bucket of this package: the format and the state.
	reserved Table = "datafile"
	// formatVersion is the version of the format that this program reads and writes. It rises with
	// each change that a program before the change would misread.
	formatVersion = 1

	checksumSize = 4
)

// tables returns the tables in the order of the state, which is part of the format.
func tables() [tableCount]Table {
	return [tableCount]Table{Buckets, Records, Audit, Usage, Namespaces, Settled, Meta}
}

func indexOf(t Table) int {
	all := tables()
	return slices.Index(all[:], t)
}

func formatKey() []byte { return []byte("format") }
func stateKey() []byte  { return []byte("state") }

// formatBytes is the value of formatKey that this program writes.
func formatBytes() []byte { return binary.LittleEndian.AppendUint32(nil, formatVersion) }

// fingerprint is the first half of a record's SHA-256. Sums of fingerprints do not depend on the
// order, so a sum can be updated record by record.
type fingerprint [2]uint64

// sealer computes checksums and fingerprints over table, key and value. Its buffer is reused, so it
// serves one goroutine at a time.
type sealer struct{ buf []byte }

// load puts table, key and value in the buffer, in a form that is different for any two records.
func (s *sealer) load(t Table, key, value []byte) {
	s.buf = append(s.buf[:0], byte(len(t))) //nolint:gosec // names of tables are short
	s.buf = append(s.buf, t...)
	s.buf = binary.LittleEndian.AppendUint32(s.buf, uint32(len(key))) //nolint:gosec // bbolt's keys end at 32 KiB
	s.buf = append(s.buf, key...)
	s.buf = append(s.buf, value...)
}

func (s *sealer) checksum() uint32 {
	return crc32.Checksum(s.buf, crc32.MakeTable(crc32.Castagnoli))
}

func (s *sealer) fingerprint() fingerprint {
	sum := sha256.Sum256(s.buf)
	return fingerprint{binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])}
}

// seal returns the stored form of a value: its checksum and itself. The record remains in the
// buffer.
func (s *sealer) seal(t Table, key, value []byte) []byte {
	s.load(t, key, value)
	sealed := make([]byte, 0, checksumSize+len(value))
	sealed = binary.LittleEndian.AppendUint32(sealed, s.checksum())
	return append(sealed, value...)
}

// open returns the value in a stored form, a part of it, or ErrCorrupt. The record remains in the
// buffer.
func (s *sealer) open(t Table, key, sealed []byte) ([]byte, error) {
	if len(sealed) < checksumSize {
		return nil, damaged("table %s, key %q: the value lost its checksum", t, key)
	}
	value := sealed[checksumSize:len(sealed):len(sealed)]
	s.load(t, key, value)
	if binary.LittleEndian.Uint32(sealed) != s.checksum() {
		return nil, damaged("table %s, key %q: the value and its checksum differ", t, key)
	}
	return value, nil
}

// digest sums up the records of a table.
type digest struct {
	count uint64
	sum   fingerprint
}

func (d *digest) add(f fingerprint) {
	d.count++
	d.sum[0] += f[0]
	d.sum[1] += f[1]
}

func (d *digest) remove(f fingerprint) {
	d.count--
	d.sum[0] -= f[0]
	d.sum[1] -= f[1]
}

// state is written by every transaction: the number of commits, which also a compacted file
// continues, and the digests of the tables.
type state struct {
	commit  uint64
	digests [tableCount]digest
}

const stateSize = 8 + tableCount*24

func (s *state) encode() []byte {
	b := make([]byte, 0, stateSize)
	b = binary.LittleEndian.AppendUint64(b, s.commit)
	for _, d := range s.digests {
		b = binary.LittleEndian.AppendUint64(b, d.count)
		b = binary.LittleEndian.AppendUint64(b, d.sum[0])
		b = binary.LittleEndian.AppendUint64(b, d.sum[1])
	}
	return b
}

func decodeState(b []byte) (state, error) {
	if len(b) != stateSize {
		return state{}, damaged("its state has %d bytes instead of %d", len(b), stateSize)
	}
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	s := state{commit: u64(0)}
	for i := range s.digests {
		s.digests[i] = digest{count: u64(1 + i*3), sum: fingerprint{u64(2 + i*3), u64(3 + i*3)}}
	}
	return s, nil
}

func (s *state) records() map[Table]uint64 {
	counts := make(map[Table]uint64, tableCount)
	for i, t := range tables() {
		counts[t] = s.digests[i].count
	}
	return counts
}
