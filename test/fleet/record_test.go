package fleet_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
)

// outcome is how a decision ended.
type outcome uint8

const (
	admitted outcome = iota
	denied
	unavailable // not applied
	uncertain   // may be applied
)

// record is one decision of a replica.
type record struct {
	From    int64 // of the call, in microseconds since 1970 by the clock of the machine, which all replicas share
	Took    int64 // microseconds
	Slow    int64 // how far the replica's corrected clock was ahead of the machine's, in microseconds: least
	Fast    int64 // and most
	Amount  int64 // n of the call
	Under   int64 // capacity in tokens of the first limit of the first bucket, as it was decided under
	Call    uint16
	Outcome outcome
	Held    uint8 // the limits of the first bucket that were held against it, a bit each
}

const recordSize = 6*8 + 4

func (r record) append(b []byte) []byte {
	for _, n := range [...]int64{r.From, r.Took, r.Slow, r.Fast, r.Amount, r.Under} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return append(binary.LittleEndian.AppendUint16(b, r.Call), byte(r.Outcome), r.Held)
}

func parseRecord(b []byte) record {
	n := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	return record{
		From: n(0), Took: n(1), Slow: n(2), Fast: n(3), Amount: n(4), Under: n(5),
		Call: binary.LittleEndian.Uint16(b[48:]), Outcome: outcome(b[50]), Held: b[51],
	}
}

func (r record) to() int64 { return r.From + r.Took }

// recorder writes records to a file. The last decisions of a replica that is killed
// may be missing from it: then fewer are counted than were admitted, never more.
type recorder struct {
	mu   sync.Mutex
	file *os.File
	w    *bufio.Writer
	b    []byte
	err  error
}

func newRecorder(path string) (*recorder, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &recorder{file: f, w: bufio.NewWriterSize(f, 64*recordSize)}, nil
}

func (r *recorder) add(rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.b = rec.append(r.b[:0])
	if _, err := r.w.Write(r.b); err != nil {
		r.err = err
	}
}

func (r *recorder) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.w.Flush(), r.file.Close())
}

// history is the records of one run of a replica.
type history struct {
	replica string
	records []record
}

func readHistory(replica, path string) (history, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return history{}, err
	}
	h := history{replica: replica, records: make([]record, 0, len(b)/recordSize)}
	for ; len(b) >= recordSize; b = b[recordSize:] { // a last part is of a replica that was killed
		r := parseRecord(b)
		if r.Took < 0 {
			return history{}, fmt.Errorf("replica %s: a call took %d µs: the machine's clock was set during the run", replica, r.Took)
		}
		h.records = append(h.records, r)
	}
	return h, nil
}

// count returns how many records have one of the outcomes.
func count(histories []history, outcomes ...outcome) int {
	n := 0
	for _, h := range histories {
		for _, r := range h.records {
			for _, o := range outcomes {
				if r.Outcome == o {
					n++
				}
			}
		}
	}
	return n
}
