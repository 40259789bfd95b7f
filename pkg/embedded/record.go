package embedded

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
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

func (k recordKey) identity() []byte {
	buf := append(appendText(nil, k.namespace), byte(k.ref.Kind))
	return appendText(appendText(buf, k.ref.Entity), k.ref.Resource)
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

// byteOf returns 1 for true.
func byteOf(b bool) byte {
	if b {
		return 1
	}
	return 0
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

// byte reads a byte from 0 to most.
func (r *reader) byte(most byte) byte {
	if len(r.buf) == 0 || r.buf[0] > most {
		r.buf, r.fault = nil, true
		return 0
	}
	b := r.buf[0]
	r.buf = r.buf[1:]
	return b
}

// someLimits reads limits, nil for none.
func (r *reader) someLimits() *limiter.Limits {
	if len(r.buf) > 0 && r.buf[0] == 0 {
		r.buf = r.buf[1:]
		return nil
	}
	return r.limits(make(map[string]*limiter.Limits))
}

// load reads the catalog.
func (c *catalog) load(tx *datafile.Tx) error {
	if value := tx.Get(datafile.Meta, []byte(metaGeneration)); value != nil {
		n, size := binary.Uvarint(value)
		if size != len(value) {
			return fmt.Errorf("the generation of limits: %w", errRecord)
		}
		c.generation.Store(n)
	}
	err := tx.Each(datafile.Records, nil, func(key, value []byte) error {
		k, r, err := parseRecord(key, value)
		if err == nil {
			c.records[k] = r
		}
		return err
	})
	c.size.Store(int64(len(c.records)))
	return err
}

// Marks in the file: the key is a mark's name, the value its owner and when it expires.

// put returns what writes a mark.
func (m mark) put(name string) change {
	c := change{table: datafile.Settled}
	c.key, c.value = identified([]byte(name))
	c.value = appendText(binary.AppendVarint(c.value, m.expires), m.owner)
	return c
}

// inUse returns what notes that a namespace is in use. The key is its name with the length
// before it, the value its name with a dot behind it: no value is empty.
func inUse(namespace string) change {
	key, _ := identified(appendText(nil, namespace))
	return change{datafile.Namespaces, key, []byte(namespace + ".")}
}

func namespaceIn(value []byte) string { return strings.TrimSuffix(string(value), ".") }

// load reads the marks that have not expired. The file keeps the others until they
// are swept.
func (k *marks) load(tx *datafile.Tx) error {
	return tx.Each(datafile.Settled, nil, func(key, value []byte) error {
		name, value, ok := identityOf(key, value)
		r := &reader{buf: value, fault: !ok}
		m := mark{expires: r.int(math.MinInt64, math.MaxInt64), owner: r.text()}
		if r.fault || len(r.buf) > 0 || len(name) == 0 || int(name[0]) > len(name)-1 {
			return fmt.Errorf("mark %x: %w", key, errRecord)
		}
		k.markShard(string(name[1 : 1+name[0]])).marks[string(name)] = m
		k.count.Add(1)
		return nil
	})
}

// load reads the secrets.
func (k *secrets) load(tx *datafile.Tx) error {
	return tx.Each(datafile.Meta, []byte(secretPrefix), func(key, value []byte) error {
		k.byName[string(key[len(secretPrefix):])] = slices.Clone(value)
		return nil
	})
}
