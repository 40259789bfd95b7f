package embedded

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditKey returns the key of an event: namespace, with its length before it; time in Unix ms, and
// generation, 8 bytes each.
func auditKey(namespace string, at time.Time, generation uint64) []byte {
	buf := auditPrefix(namespace)
	buf = binary.BigEndian.AppendUint64(buf, uint64(at.UnixMilli())) // #nosec G115 -- sorts all times that count
	return binary.BigEndian.AppendUint64(buf, generation)
}

// auditPrefix returns the beginning of the keys of a namespace.
func auditPrefix(namespace string) []byte { return appendText(nil, limiter.ShortName(namespace)) }

// An event's value: version; time, Unix ms; action; kind, entity and resource of the subject;
// generation; detail; principal; reason; the records before and after. Each of these is a value with its
// length before it, where length 0 means no record. Names are any bytes, so it is not JSON.
const eventVersion = 1

// appendEvent appends the value of an event.
func appendEvent(buf []byte, e *limiter.AuditEvent) []byte {
	buf = binary.AppendVarint(append(buf, eventVersion), e.Time.UnixMilli())
	buf = append(appendText(buf, e.Action), byte(e.Subject.Kind))
	buf = appendText(appendText(buf, e.Subject.Entity), e.Subject.Resource)
	buf = appendText(binary.AppendUvarint(buf, e.Generation), e.Detail)
	buf = appendText(appendText(buf, e.Principal), e.Reason)
	for _, r := range []limiter.Record{e.Before, e.After} {
		var value []byte
		if !r.Empty() {
			value = appendRecord(nil, r)
		}
		buf = appendText(buf, string(value))
	}
	return buf
}

// parseEvent reads the value of an event.
func parseEvent(value []byte) (limiter.AuditEvent, error) {
	r := &recordReader{Rest: value}
	r.version(eventVersion)
	e := limiter.AuditEvent{Time: time.UnixMilli(r.Int(math.MinInt64, math.MaxInt64)).UTC(), Action: r.Text()}
	e.Subject.Kind = limiter.RefKind(r.Byte(byte(limiter.RefSystemLimits)))
	e.Subject.Entity, e.Subject.Resource = r.Text(), r.Text()
	e.Generation, e.Detail, e.Principal, e.Reason = r.Uint(), r.Text(), r.Text(), r.Text()
	e.ID = limiter.AuditID(e.Time, e.Generation)
	e.Before, e.After = r.record(e.Subject), r.record(e.Subject)
	if r.Failed || len(r.Rest) > 0 {
		return limiter.AuditEvent{}, fmt.Errorf("an audit event: %w", errFormat)
	}
	return e, nil
}

// record reads a record of ref with its length before it; an empty one for none.
func (r *recordReader) record(ref limiter.Ref) limiter.Record {
	value := r.Text()
	if value == "" {
		return limiter.Record{}
	}
	out, ok := parseValue(ref, []byte(value))
	r.Failed = r.Failed || !ok
	return out
}
