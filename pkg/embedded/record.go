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
// A disabled record has version 2, and the same behind it. An entity that is not stored and is
// disabled has version 3, and no fields. The record of a namespace that is not active has version
// 4; behind it stand whether it is disabled, 0 or 1, its state, and since when, Unix ms. A record with
// budgets has version 5, and the same behind it, also in an active namespace. Behind its limits stand the number of
// budgets, and of each the limit, the window and the tokens.
const (
	recordVersion   = 1
	disabledVersion = 2
	bareVersion     = 3
	stateVersion    = 4
	budgetVersion   = 5
)

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

func parseRecord(key, value []byte) (recordKey, limiter.Record, error) {
	identity, value, ok := identityOf(key, value)
	r := &reader{buf: identity, fault: !ok}
	k := recordKey{namespace: r.text()}
	k.ref.Kind = limiter.RefKind(r.byte(byte(limiter.RefSystemLimits)))
	k.ref.Entity, k.ref.Resource = r.text(), r.text()
	if r.fault || len(r.buf) > 0 {
		return k, limiter.Record{}, fmt.Errorf("record %x: %w", key, errRecord)
	}
	out, ok := parseValue(k.ref, value)
	if !ok {
		return k, limiter.Record{}, fmt.Errorf("record of entity %q, resource %q: %w", k.ref.Entity, k.ref.Resource, errRecord)
	}
	return k, out, nil
}

// parseValue is the inverse of appendRecord.
func parseValue(ref limiter.Ref, value []byte) (limiter.Record, bool) {
	r := &reader{buf: value}
	version := r.byte(budgetVersion)
	out := limiter.Record{Disabled: version == disabledVersion || version == bareVersion}
	if version >= stateVersion {
		out.Disabled = r.byte(1) == 1
		out.State = limiter.NamespaceState(r.byte(byte(limiter.NamespacePurged)))
		since := r.int(math.MinInt64, math.MaxInt64)
		active := out.State == limiter.NamespaceActive
		if !active {
			out.Since = time.UnixMilli(since).UTC()
		}
		r.fault = r.fault || active && (version == stateVersion || since != 0) || !active && ref.Kind != limiter.RefSystemLimits
	}
	out.OnUnavailable = limiter.Policy(r.byte(byte(limiter.Local)))
	out.Limits = r.someLimits()
	if version == budgetVersion {
		out.Budgets = r.budgets(out.Limits)
	}
	if ref.Kind == limiter.RefEntity && version != bareVersion {
		e := &limiter.Entity{ID: ref.Entity, Name: r.text(), Parent: r.text(), Cascade: r.uint() == 1, Version: r.uint()}
		seconds := r.int(math.MinInt64, math.MaxInt64)
		e.CreatedAt = time.Unix(seconds, int64(r.uint()%1e9)).UTC() // #nosec G115 -- below 1e9
		if n := r.uint(); n > 0 && !r.fault {
			e.Metadata = make(map[string]string)
			for ; n > 0 && !r.fault; n-- {
				name := r.text()
				e.Metadata[name] = r.text()
			}
		}
		out.Entity = e
	}
	return out, !r.fault && len(r.buf) == 0 && version >= recordVersion
}
