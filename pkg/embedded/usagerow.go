package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Usage in the file: for every hour, day and month (UTC) the consumption of a limit, net of
// refunds, in millitokens. A row without a limit counts the events, see limiter.Usage.
//
//	key    kind, 1 byte; begin of the window, Unix s, 8 bytes; namespace, entity,
//	       resource and limit, each with its length before it; no limit has length 0
//	value  a varint
//
// Consumption is counted in the bucket's record until its hour has ended. It moves to rows in the
// transaction that writes the record without it. So the file has it exactly up to the bucket's
// state. A crash loses as much of it as of the balance.

// usageTag is the first byte of the keys of a window's rows.
func usageTag(w limiter.UsageWindow) byte { return "hdm"[w] }

// usageBegin returns the beginning of the keys of a window's rows that start at a time.
func usageBegin(w limiter.UsageWindow, start time.Time) []byte {
	return binary.BigEndian.AppendUint64([]byte{usageTag(w)}, uint64(start.Unix())) // #nosec G115 -- sorts all times that count
}

func usageKey(w limiter.UsageWindow, start time.Time, r *usageRow) []byte {
	buf := usageBegin(w, start)
	for _, s := range []string{limiter.ShortName(r.namespace), r.entity, r.resource, r.limit} {
		buf = appendText(buf, s)
	}
	return buf
}

// addUsage adds rows to their hour, day and month.
func addUsage(tx *datafile.Tx, rows []usageRow) error {
	for i := range rows {
		r := &rows[i]
		at := time.Unix(r.hour*hourMs/1000, 0)
		for _, w := range limiter.UsageWindows() {
			key := usageKey(w, w.Start(at), r)
			total, err := usageValue(tx.Get(datafile.Usage, key))
			if err != nil {
				return err
			}
			if err := tx.Put(datafile.Usage, key, binary.AppendVarint(nil, limiter.SaturatingSum(total, r.amount))); err != nil {
				return err
			}
		}
	}
	return nil
}

func usageValue(value []byte) (int64, error) {
	if value == nil {
		return 0, nil
	}
	n, size := binary.Varint(value)
	if size != len(value) {
		return 0, fmt.Errorf("a row of usage: %w", errFormat)
	}
	return n, nil
}

// usageIn reports whether a row belongs to a namespace.
func usageIn(key []byte, namespace string) bool {
	return len(key) > usageHead && bytes.HasPrefix(key[usageHead:], appendText(nil, limiter.ShortName(namespace)))
}

// usageHead is the length of the part of a key before its names: the window and its start.
const usageHead = 1 + 8

// usageStart returns the start of the window of a key.
func usageStart(key []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(key[1:usageHead])), 0).UTC() // #nosec G115 -- usageBegin made it of an int64
}
