package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Usage in the file: for every hour, day and month (UTC) the consumption of a limit,
// net of refunds, in millitokens. A row without a limit counts the events, see limiter.Usage.
//
//	key    kind, 1 byte; begin of the window, Unix s, 8 bytes; namespace, entity,
//	       resource and limit, each with its length before it; no limit has length 0
//	value  a varint
//
// Consumption is counted in the bucket's record until its hour is over, and moves to
// rows in the transaction that writes the record without it. So the file has it exactly up to
// the bucket's state; a crash loses of it what it loses of the balance.
type usageRow struct {
	consumed

	namespace, entity, resource string
}

// usageTag is the first byte of the keys of a window's rows.
func usageTag(w limiter.UsageWindow) byte { return "hdm"[w] }

const hourMs = 60 * 60 * 1000

// hourOf returns the hour of a time, hours since 1970.
func hourOf(ms int64) int64 {
	h := ms / hourMs
	if ms%hourMs < 0 {
		h--
	}
	return h
}

// usageBegin returns the beginning of the keys of a window's rows that start at a time.
func usageBegin(w limiter.UsageWindow, start time.Time) []byte {
	return binary.BigEndian.AppendUint64([]byte{usageTag(w)}, uint64(start.Unix())) // #nosec G115 -- sorts all times that count
}

func usageKey(w limiter.UsageWindow, start time.Time, r *usageRow) []byte {
	buf := usageBegin(w, start)
	for _, s := range []string{shortname.Of(r.namespace), r.entity, r.resource, r.limit} {
		buf = appendText(buf, s)
	}
	return buf
}

// eventsLimit stands for a limit where events are counted. No limit has this name.
const eventsLimit = ""

// consumed is usage of a limit, or events, of an hour.
type consumed struct {
	hour   int64
	limit  string // eventsLimit for events
	amount int64  // millitokens, or events
}

// put notes the usage of a limit in the hour, or its events.
func (k *block) put(limit string, amount int64) {
	if amount != 0 {
		past := k.backlog()
		past.past = append(past.past, consumed{k.hour, limit, amount})
	}
}

// turn ends the hour that is counted, and counts another.
func (b *bucket) turn(hour int64) {
	k := b.block
	for i := range b.limits.Len() {
		s := k.span(i)
		k.put(b.limits.At(i).Name, s.used)
		s.used = 0
	}
	k.put(eventsLimit, k.events)
	k.hour, k.events = hour, 0
}

// unsaved reports whether anything was used that no row has.
func (k *block) unsaved() bool {
	if k.first.used != 0 || k.events != 0 {
		return true
	}
	if k.rest == nil {
		return false
	}
	for i := range k.rest.spans {
		if k.rest.spans[i].used != 0 {
			return true
		}
	}
	return len(k.rest.past) > 0
}

// rows appends what is to be in rows from the next commit on.
func (b *bucket) rows(rows []usageRow) []usageRow {
	past := b.block.rest
	if past == nil {
		return rows
	}
	past.flying = len(past.past)
	for _, c := range past.past {
		rows = append(rows, usageRow{consumed: c, namespace: b.namespace.Value(), entity: b.entity, resource: b.resource.Value()})
	}
	return rows
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
		return 0, fmt.Errorf("a row of usage: %w", errRecord)
	}
	return n, nil
}

// consumption calls fn for what rows do not have. The shard must be locked.
func (b *bucket) consumption(fn func(consumed)) {
	k := b.block
	if k == nil {
		return
	}
	for i := range b.limits.Len() {
		fn(consumed{k.hour, b.limits.At(i).Name, k.span(i).used})
	}
	fn(consumed{k.hour, eventsLimit, k.events})
	if k.rest != nil {
		for _, c := range k.rest.past {
			fn(c)
		}
	}
}

// usageIn reports whether a row is of a namespace.
func usageIn(key []byte, namespace string) bool {
	return len(key) > usageHead && bytes.HasPrefix(key[usageHead:], appendText(nil, shortname.Of(namespace)))
}
