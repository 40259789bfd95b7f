package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// Usage in the file: for every hour, day and month (UTC) what was consumed of a limit,
// net of what was given back, in millitokens.
//
//	key    kind, 1 byte; begin of the window, Unix s, 8 bytes; namespace, entity,
//	       resource and limit, each with its length before it
//	value  a varint
//
// Consumption is counted in the bucket's record until its hour is over, and moves to
// rows in the transaction that writes the record without it. So the file has it exactly up to
// the bucket's state; a crash loses of it what it loses of the balance.
type usageRow struct {
	consumed

	namespace, entity, resource string
}

// Window is a kind of usage snapshot.
type Window byte

// The windows, of UTC.
const (
	Hour  Window = 'h'
	Day   Window = 'd'
	Month Window = 'm'
)

// begin returns when the window began that a time is in.
func (w Window) begin(t time.Time) time.Time {
	t = t.UTC()
	switch w {
	case Day:
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	case Month:
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	case Hour:
	}
	return t.Truncate(time.Hour)
}

const hourMs = 60 * 60 * 1000

// hourOf returns the hour of a time, hours since 1970.
func hourOf(ms int64) int64 {
	h := ms / hourMs
	if ms%hourMs < 0 {
		h--
	}
	return h
}

func usageKey(w Window, begin time.Time, r *usageRow) []byte {
	buf := binary.BigEndian.AppendUint64([]byte{byte(w)}, uint64(begin.Unix())) // #nosec G115 -- sorts all times that count
	for _, s := range []string{shortname.Of(r.namespace), r.entity, r.resource, r.limit} {
		buf = appendText(buf, s)
	}
	return buf
}

// consumed is usage of a limit that is not counted any more, and not in a row yet.
type consumed struct {
	hour   int64
	limit  string
	amount int64
}

// put notes what was used of a limit in the hour.
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
	k.hour = hour
}

// unsaved reports whether anything was used that no row has.
func (k *block) unsaved() bool {
	if k.first.used != 0 {
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

// plus adds, and stops at the ends of the numbers.
func plus(a, b int64) int64 {
	sum := a + b
	switch {
	case (a^sum)&(b^sum) >= 0: // mostly
		return sum
	case a > 0:
		return math.MaxInt64
	default:
		return math.MinInt64
	}
}

// addUsage adds rows to their hour, day and month.
func addUsage(tx *datafile.Tx, rows []usageRow) error {
	for i := range rows {
		r := &rows[i]
		at := time.Unix(r.hour*hourMs/1000, 0)
		for _, w := range []Window{Hour, Day, Month} {
			key := usageKey(w, w.begin(at), r)
			total, err := usageValue(tx.Get(datafile.Usage, key))
			if err != nil {
				return err
			}
			if err := tx.Put(datafile.Usage, key, binary.AppendVarint(nil, plus(total, r.amount))); err != nil {
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

// Usage returns what was consumed of every limit of an entity and a resource in the
// window that a time is in, net of what was given back, in millitokens, up to now. A
// store without a file keeps none.
func (s *Store) Usage(ctx context.Context, namespace, entity, resource string, w Window, at time.Time) (map[string]int64, error) {
	if err := contextErr(ctx); err != nil || s.disk == nil {
		return nil, err
	}
	entity, resource = shortname.Of(entity), shortname.Of(resource)
	begin := w.begin(at)
	used := make(map[string]int64)
	add := func(c consumed) {
		if w.begin(time.UnixMilli(c.hour * hourMs)).Equal(begin) {
			used[c.limit] = plus(used[c.limit], c.amount)
		}
	}
	prefix := usageKey(w, begin, &usageRow{namespace: namespace, entity: entity, resource: resource})
	prefix = prefix[:len(prefix)-1] // the length of the limit's name
	found := s.find(namespace, entity, resource)

	// What is in rows is in no bucket any more.
	s.disk.turning.Lock()
	defer s.disk.turning.Unlock()
	for _, a := range found {
		a.shard.mu.Lock()
		a.bucket.consumption(add)
		a.shard.mu.Unlock()
	}
	err := s.disk.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Usage, prefix, func(key, value []byte) error {
			amount, err := usageValue(value)
			r := &reader{buf: key[len(prefix):]}
			limit := r.text()
			used[limit] = plus(used[limit], amount)
			return err
		})
	})
	return used, unavailable(err)
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
	if k.rest != nil {
		for _, c := range k.rest.past {
			fn(c)
		}
	}
}

// find returns the buckets of an entity and a resource.
func (s *Store) find(namespace, entity, resource string) (found []asked) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for hash, b := range sh.buckets {
			for ; b != nil; b = b.next {
				if b.entity == entity && b.resource.Value() == resource && b.namespace.Value() == namespace {
					found = append(found, asked{sh, hash, b})
				}
			}
		}
		sh.mu.Unlock()
	}
	return found
}

// usageIn reports whether a row is of a namespace.
func usageIn(key []byte, namespace string) bool {
	const head = 1 + 8 // the window, and when it began
	return len(key) > head && bytes.HasPrefix(key[head:], appendText(nil, shortname.Of(namespace)))
}
