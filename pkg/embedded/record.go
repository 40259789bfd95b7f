package embedded

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Entities and limits in the file:
//
//	key    namespace, with its length before it; kind, 1 byte; entity and resource, each
//	       with its length before it
//	value  version; flags; state of the namespace, and since when, Unix ms, 0 while it is
//	       active; since when it is disabled, Unix ms, by which principal, and the reason, if
//	       the flag is set; policy; limits; budgets; fields of the entity, if the flag is set
const recordVersion = 1

// Flags of a record.
const (
	flagDisabled  = 1
	flagEntity    = 2
	flagAlone     = 4
	flagDisabling = 8
)

// recordID names a record of the catalog.
type recordID struct {
	Namespace string
	Ref       limiter.Ref
}

// Identity returns the identity of the record, see [keyOf].
func (k recordID) Identity() []byte {
	buf := append(appendText(nil, k.Namespace), byte(k.Ref.Kind))
	return appendText(appendText(buf, k.Ref.Entity), k.Ref.Resource)
}

// appendRecord appends the value of a record.
func appendRecord(buf []byte, r limiter.Record) []byte {
	flags, since := byteOf(r.Disabled)*flagDisabled|byteOf(r.Entity != nil)*flagEntity|byteOf(r.Alone)*flagAlone|byteOf(r.Disabling != nil)*flagDisabling, int64(0)
	if r.State != limiter.NamespaceActive {
		since = r.Since.UnixMilli()
	}
	buf = binary.AppendVarint(append(buf, recordVersion, flags, byte(r.State)), since)
	if d := r.Disabling; d != nil {
		buf = appendText(appendText(binary.AppendVarint(buf, d.Since.UnixMilli()), d.By), d.Reason)
	}
	buf = append(buf, byte(r.OnUnavailable))
	buf = appendBudgets(appendLimits(buf, r.Limits), r.Budgets)
	if r.Entity == nil {
		return buf
	}
	e := r.Entity
	for _, s := range []string{e.Name, e.Parent, e.Plan} {
		buf = appendText(buf, s)
	}
	buf = append(buf, byteOf(e.Cascade))
	buf = binary.AppendUvarint(buf, e.Version)
	buf = binary.AppendVarint(buf, e.CreatedAt.Unix())
	buf = binary.AppendUvarint(buf, uint64(e.CreatedAt.Nanosecond())) // #nosec G115 -- not negative
	buf = binary.AppendUvarint(buf, uint64(len(e.Metadata)))
	for _, k := range slices.Sorted(maps.Keys(e.Metadata)) {
		buf = appendText(appendText(buf, k), e.Metadata[k])
	}
	return buf
}

// parseRecord reads a record by its key and its value.
func parseRecord(key, value []byte) (recordID, limiter.Record, error) {
	identity, value, ok := identityOf(key, value)
	r := &recordReader{Rest: identity, Failed: !ok}
	k := recordID{Namespace: r.Text()}
	k.Ref.Kind = limiter.RefKind(r.Byte(byte(limiter.RefSystemLimits)))
	k.Ref.Entity, k.Ref.Resource = r.Text(), r.Text()
	if r.Failed || len(r.Rest) > 0 {
		return k, limiter.Record{}, fmt.Errorf("record %x: %w", key, errFormat)
	}
	out, ok := parseValue(k.Ref, value)
	if !ok {
		return k, limiter.Record{}, fmt.Errorf("record of entity %q, resource %q: %w", k.Ref.Entity, k.Ref.Resource, errFormat)
	}
	return k, out, nil
}

// parseValue is the inverse of appendRecord.
func parseValue(ref limiter.Ref, value []byte) (limiter.Record, bool) {
	r := &recordReader{Rest: value}
	r.version(recordVersion)
	flags := r.Byte(flagDisabled | flagEntity | flagAlone | flagDisabling)
	out := limiter.Record{Disabled: flags&flagDisabled != 0, Alone: flags&flagAlone != 0, State: limiter.NamespaceState(r.Byte(byte(limiter.NamespacePurged)))}
	since, active := r.Int(math.MinInt64, math.MaxInt64), out.State == limiter.NamespaceActive
	if !active {
		out.Since = time.UnixMilli(since).UTC()
	}
	r.Failed = r.Failed || active && since != 0 || !active && ref.Kind != limiter.RefSystemLimits
	if flags&flagDisabling != 0 {
		r.Failed = r.Failed || !out.Disabled
		out.Disabling = &limiter.Disabling{Since: time.UnixMilli(r.Int(math.MinInt64, math.MaxInt64)).UTC(), By: r.Text(), Reason: r.Text()}
	}
	out.OnUnavailable = limiter.Policy(r.Byte(byte(limiter.Local)))
	out.Limits = r.someLimits()
	out.Budgets = r.budgets(out.Limits)
	if flags&flagEntity != 0 {
		r.Failed = r.Failed || ref.Kind != limiter.RefEntity
		e := &limiter.Entity{ID: ref.Entity, Name: r.Text(), Parent: r.Text(), Plan: r.Text(), Cascade: r.Uint() == 1, Version: r.Uint()}
		seconds := r.Int(math.MinInt64, math.MaxInt64)
		e.CreatedAt = time.Unix(seconds, int64(r.Uint()%1e9)).UTC() // #nosec G115 -- below 1e9
		if n := r.Uint(); n > 0 && !r.Failed {
			e.Metadata = make(map[string]string)
			for ; n > 0 && !r.Failed; n-- {
				name := r.Text()
				e.Metadata[name] = r.Text()
			}
		}
		out.Entity = e
	}
	return out, !r.Failed && len(r.Rest) == 0
}
