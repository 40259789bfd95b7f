package embedded

import (
	"encoding/binary"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// changes returns the changes of the file for an edit.
func (e *edit) changes(now time.Time) []change {
	all := []change{{datafile.Meta, []byte(metaGeneration), binary.AppendUvarint(nil, e.generation)}}
	for _, p := range e.puts {
		c := change{table: datafile.Records}
		var head []byte
		c.key, head = keyOf(p.key.Identity())
		if !p.record.Empty() {
			c.value = appendRecord(head, p.record)
		}
		all = append(all, c)
	}
	if e.action == "" {
		return all
	}
	event := limiter.AuditEvent{
		ID: limiter.AuditID(now, e.generation), Time: now.UTC().Truncate(time.Millisecond),
		Action: e.action, Subject: e.subject, Generation: e.generation, Detail: e.detail,
		Before: e.before, After: e.after,
	}
	if e.by != nil {
		event.Principal, event.Reason = limiter.PrincipalFrom(e.by), limiter.ReasonFrom(e.by)
	}
	value := appendEvent(nil, &event)
	return append(all,
		change{datafile.Audit, auditKey(e.namespace, now, e.generation), value},
		inUse(e.namespace))
}
