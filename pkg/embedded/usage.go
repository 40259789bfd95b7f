package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
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
// Consumption is counted in the bucket's record until its hour is over, so that the
// file has it exactly up to the bucket's state; a crash loses of it what it loses of
// the balance.
type usageRow struct {
	hour                               int64
	namespace, entity, resource, limit string
	amount                             int64
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

// unsaved reports whether anything was used that the file does not have.
func (k *block) unsaved() bool {
	for i := range k.spans {
		if k.spans[i].used != 0 {
			return true
		}
	}
	return false
}

// turn appends what was used in the hour that is counted, if it is over or the bucket
// leaves, and counts the next. The shard must be locked.
func (b *bucket) turn(rows []usageRow, hour int64) []usageRow {
	k := b.block
	if k.hour == hour && !k.leaving {
		return rows
	}
	for i := range k.spans {
		if s := &k.spans[i]; s.used != 0 {
			rows = append(rows, usageRow{
				hour: k.hour, namespace: b.namespace.Value(), entity: b.entity, resource: b.resource.Value(), limit: b.limits.At(i).Name, amount: s.used,
			})
			s.turned, s.used = s.used, 0
		}
	}
	k.hour = hour
	return rows
}

// turned ends what turn began: what was not written is counted again, in the hour at hand.
func (b *bucket) turned(failed bool) {
	for i := range b.block.spans {
		s := &b.block.spans[i]
		if failed {
			s.used += s.turned
		}
		s.turned = 0
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
			if err := tx.Put(datafile.Usage, key, binary.AppendVarint(nil, total+r.amount)); err != nil {
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
// window that a time is in, net of what was given back, in millitokens. A store
// without a file keeps none. What buckets consumed in the hour at hand is in it.
func (s *Store) Usage(ctx context.Context, namespace, entity, resource string, w Window, at time.Time) (map[string]int64, error) {
	if err := contextErr(ctx); err != nil || s.disk == nil {
		return nil, err
	}
	entity, resource = shortname.Of(entity), shortname.Of(resource)
	used := make(map[string]int64)
	begin := w.begin(at)
	s.current(namespace, entity, resource, func(hour int64, limit string, amount int64) {
		if w.begin(time.Unix(hour*hourMs/1000, 0)).Equal(begin) {
			used[limit] += amount
		}
	})
	prefix := usageKey(w, begin, &usageRow{namespace: namespace, entity: entity, resource: resource})
	prefix = prefix[:len(prefix)-1] // the length of the limit's name
	err := s.disk.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Usage, prefix, func(key, value []byte) error {
			amount, err := usageValue(value)
			r := &reader{buf: key[len(prefix):]}
			used[r.text()] += amount
			return err
		})
	})
	return used, err
}

// current calls fn for what buckets of an entity and a resource have used and the
// usage rows do not have.
func (s *Store) current(namespace, entity, resource string, fn func(hour int64, limit string, amount int64)) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, b := range sh.buckets {
			for ; b != nil; b = b.next {
				if b.block == nil || b.entity != entity || b.resource.Value() != resource || b.namespace.Value() != namespace {
					continue
				}
				for j := range b.block.spans {
					if n := b.block.spans[j].used; n != 0 {
						fn(b.block.hour, b.limits.At(j).Name, n)
					}
				}
			}
		}
		sh.mu.Unlock()
	}
}
