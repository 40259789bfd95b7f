package embedded

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditKey is the key of an event: namespace, with its length before it; time, Unix
// ms, and generation, 8 bytes each.
func auditKey(namespace string, at time.Time, generation uint64) []byte {
	buf := auditPrefix(namespace)
	buf = binary.BigEndian.AppendUint64(buf, uint64(at.UnixMilli())) // #nosec G115 -- sorts all times that count
	return binary.BigEndian.AppendUint64(buf, generation)
}

func auditPrefix(namespace string) []byte { return appendText(nil, shortname.Of(namespace)) }

// changes returns what goes into the file for an edit.
func (e *edit) changes(now time.Time) []change {
	all := []change{{datafile.Meta, []byte(metaGeneration), binary.AppendUvarint(nil, e.generation)}}
	for _, p := range e.puts {
		c := change{table: datafile.Records}
		var head []byte
		if c.key, head = identified(p.key.identity()); !p.record.Empty() {
			c.value = appendRecord(head, p.key.ref, p.record)
		}
		all = append(all, c)
	}
	if e.action == "" {
		return all
	}
	event := limiter.AuditEvent{
		ID: limiter.AuditID(now, e.generation), Time: now.UTC().Truncate(time.Millisecond),
		Principal: e.principal, Action: e.action, Subject: e.subject, Generation: e.generation, Detail: e.detail,
		Before: e.before, After: e.after,
	}
	value := appendEvent(nil, &event)
	return append(all,
		change{datafile.Audit, auditKey(e.namespace, now, e.generation), value},
		inUse(e.namespace))
}

// An event's value: version; time, Unix ms; action; kind, entity and resource of the
// subject; generation; detail. From version 2 on also the principal, and the records before
// and after as values with their length before them, of which 0 is none. Names are any
// bytes, so it is not JSON.
const (
	eventVersion = 2
	eventBare    = 1 // without principal and records
)

func appendEvent(buf []byte, e *limiter.AuditEvent) []byte {
	buf = binary.AppendVarint(append(buf, eventVersion), e.Time.UnixMilli())
	buf = append(appendText(buf, e.Action), byte(e.Subject.Kind))
	buf = appendText(appendText(buf, e.Subject.Entity), e.Subject.Resource)
	buf = appendText(binary.AppendUvarint(buf, e.Generation), e.Detail)
	buf = appendText(buf, e.Principal)
	for _, r := range []limiter.Record{e.Before, e.After} {
		var value []byte
		if !r.Empty() {
			value = appendRecord(nil, e.Subject, r)
		}
		buf = appendText(buf, string(value))
	}
	return buf
}

func parseEvent(value []byte) (limiter.AuditEvent, error) {
	r := &reader{buf: value}
	version := r.byte(eventVersion)
	e := limiter.AuditEvent{Time: time.UnixMilli(r.int(math.MinInt64, math.MaxInt64)).UTC(), Action: r.text()}
	e.Subject.Kind = limiter.RefKind(r.byte(byte(limiter.RefSystemLimits)))
	e.Subject.Entity, e.Subject.Resource = r.text(), r.text()
	e.Generation, e.Detail = r.uint(), r.text()
	e.ID = limiter.AuditID(e.Time, e.Generation)
	if version == eventVersion {
		e.Principal = r.text()
		e.Before, e.After = r.record(e.Subject), r.record(e.Subject)
	}
	if r.fault || len(r.buf) > 0 || version < eventBare {
		return limiter.AuditEvent{}, fmt.Errorf("an audit event: %w", errRecord)
	}
	return e, nil
}

// record reads a record of ref behind its length; an empty one for none.
func (r *reader) record(ref limiter.Ref) limiter.Record {
	value := r.text()
	if value == "" {
		return limiter.Record{}
	}
	out, ok := parseValue(ref, []byte(value))
	r.fault = r.fault || !ok
	return out
}
