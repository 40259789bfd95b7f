package embedded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// AuditEvent says what a change did. It is written in the change's own transaction.
type AuditEvent struct {
	ID         string      // sorts by time, then by generation
	Time       time.Time   // whole milliseconds
	Action     string      // entity.put, entity.delete, limits.put, limits.delete
	Subject    limiter.Ref // what was changed
	Generation uint64      // after the change
	Detail     string      // what it is now, for people
}

// auditAge is how long events are kept.
const auditAge = 90 * 24 * time.Hour

// auditKey is the key of an event: namespace, with its length before it; time, Unix
// ms, and generation, 8 bytes each.
func auditKey(namespace string, at time.Time, generation uint64) []byte {
	buf := appendText(nil, shortname.Of(namespace))
	buf = binary.BigEndian.AppendUint64(buf, uint64(at.UnixMilli())) // #nosec G115 -- sorts all times that count
	return binary.BigEndian.AppendUint64(buf, generation)
}

// changes returns what goes into the file for an edit.
func (e *edit) changes(now time.Time) []change {
	all := []change{{datafile.Meta, []byte(metaGeneration), binary.AppendUvarint(nil, e.generation)}}
	for _, p := range e.puts {
		c := change{table: datafile.Records}
		var head []byte
		if c.key, head = identified(p.key.identity()); !p.record.Empty() {
			c.value = appendRecord(head, p.record)
		}
		all = append(all, c)
	}
	if e.action == "" {
		return all
	}
	event := AuditEvent{
		ID:   now.UTC().Format("2006-01-02T15:04:05.000Z") + fmt.Sprintf("-%016x", e.generation),
		Time: now.UTC().Truncate(time.Millisecond), Action: e.action, Subject: e.refs[0], Generation: e.generation, Detail: e.detail(),
	}
	value, _ := json.Marshal(event) // of strings, numbers and a time: never fails
	return append(all,
		change{datafile.Audit, auditKey(e.namespace, now, e.generation), value},
		inUse(e.namespace))
}

// detail says what the subject is now.
func (e *edit) detail() string {
	if len(e.puts) == 0 {
		return ""
	}
	r := e.puts[0].record
	switch {
	case r.Entity != nil:
		return fmt.Sprintf("name %.100q, parent %.100q, cascade %t, metadata of %d", r.Entity.Name, r.Entity.Parent, r.Entity.Cascade, len(r.Entity.Metadata))
	case r.Limits.Len() > 0:
		text := ""
		for i := range r.Limits.Len() {
			l := r.Limits.At(i)
			text += fmt.Sprintf("%s %s; ", l.Name, l.String())
		}
		return text[:len(text)-2]
	}
	return ""
}

// AuditEvents yields the changes of what ref names, oldest first: of an entity those
// of its limits too. A store without a file keeps none. After an error, the last that
// it yields, there may be more.
func (s *Store) AuditEvents(ctx context.Context, namespace string, ref limiter.Ref) iter.Seq2[AuditEvent, error] {
	return func(yield func(AuditEvent, error) bool) {
		if s.disk == nil {
			return
		}
		stopped := fmt.Errorf("stopped")
		err := s.disk.file.View(func(tx *datafile.Tx) error {
			return tx.Each(datafile.Audit, appendText(nil, shortname.Of(namespace)), func(_, value []byte) error {
				if err := contextErr(ctx); err != nil {
					return err
				}
				var e AuditEvent
				if err := json.Unmarshal(value, &e); err != nil {
					return fmt.Errorf("an audit event: %w", errRecord)
				}
				if subjectOf(e.Subject) == subjectOf(ref) && !yield(e, nil) {
					return stopped
				}
				return nil
			})
		})
		if err != nil && err != stopped { //nolint:errorlint // it is this one
			yield(AuditEvent{}, err)
		}
	}
}

// subjectOf returns under what the events of a record are found: the entity, the
// resource, or the system.
func subjectOf(ref limiter.Ref) limiter.Ref {
	switch ref.Kind {
	case limiter.RefEntity, limiter.RefEntityLimits:
		return limiter.EntityRef(ref.Entity)
	case limiter.RefResourceLimits, limiter.RefSystemLimits:
	}
	return ref
}
