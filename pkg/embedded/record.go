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
//	value  version 1; policy; limits, where there are any; else, for an entity, its fields
//
// A disabled record has version 2, and the same contents. An entity that is not stored and is
// disabled has version 3, and no fields. The record of a namespace that is not active has version
// 4. After the version it has whether it is disabled, 0 or 1, its state, and since when, Unix ms. A
// record with budgets has version 5 and the same contents, also in an active namespace. After its
// limits it has the number of budgets, and of each the limit, the window and the tokens.
const (
	recordVersion   = 1
	disabledVersion = 2
	bareVersion     = 3
	stateVersion    = 4
	budgetVersion   = 5
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

// versionOf returns the version of the record's value.
func versionOf(ref limiter.Ref, r limiter.Record) byte {
	switch {
	case r.Budgets.Len() > 0:
		return budgetVersion
	case r.State != limiter.NamespaceActive:
		return stateVersion
	case !r.Disabled:
		return recordVersion
	case ref.Kind == limiter.RefEntity && r.Entity == nil:
		return bareVersion
	default:
		return disabledVersion
	}
}

// appendRecord appends the value of a record.
func appendRecord(buf []byte, ref limiter.Ref, r limiter.Record) []byte {
	version := versionOf(ref, r)
	buf = append(buf, version)
	if version >= stateVersion {
		since := int64(0)
		if r.State != limiter.NamespaceActive {
			since = r.Since.UnixMilli()
		}
		buf = binary.AppendVarint(append(buf, byteOf(r.Disabled), byte(r.State)), since)
	}
	buf = append(buf, byte(r.OnUnavailable))
	buf = appendLimits(buf, r.Limits)
	if version == budgetVersion {
		buf = appendBudgets(buf, r.Budgets)
	}
	if r.Entity == nil {
		return buf
	}
	e := r.Entity
	for _, s := range []string{e.Name, e.Parent} {
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

// parseValue is the inverse of AppendRecord.
func parseValue(ref limiter.Ref, value []byte) (limiter.Record, bool) {
	r := &recordReader{Rest: value}
	version := r.Byte(budgetVersion)
	out := limiter.Record{Disabled: version == disabledVersion || version == bareVersion}
	if version >= stateVersion {
		out.Disabled = r.Byte(1) == 1
		out.State = limiter.NamespaceState(r.Byte(byte(limiter.NamespacePurged)))
		since := r.Int(math.MinInt64, math.MaxInt64)
		active := out.State == limiter.NamespaceActive
		if !active {
			out.Since = time.UnixMilli(since).UTC()
		}
		r.Failed = r.Failed || active && (version == stateVersion || since != 0) || !active && ref.Kind != limiter.RefSystemLimits
	}
	out.OnUnavailable = limiter.Policy(r.Byte(byte(limiter.Local)))
	out.Limits = r.someLimits()
	if version == budgetVersion {
		out.Budgets = r.budgets(out.Limits)
	}
	if ref.Kind == limiter.RefEntity && version != bareVersion {
		e := &limiter.Entity{ID: ref.Entity, Name: r.Text(), Parent: r.Text(), Cascade: r.Uint() == 1, Version: r.Uint()}
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
	return out, !r.Failed && len(r.Rest) == 0 && version >= recordVersion
}
