package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
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
	}
	value := appendEvent(nil, &event)
	return append(all,
		change{datafile.Audit, auditKey(e.namespace, now, e.generation), value},
		inUse(e.namespace))
}

// An event's value: version 1; time, Unix ms; action; kind, entity and resource of the
// subject; generation; detail. Names are any bytes, so it is not JSON.
const eventVersion = 1

func appendEvent(buf []byte, e *limiter.AuditEvent) []byte {
	buf = binary.AppendVarint(append(buf, eventVersion), e.Time.UnixMilli())
	buf = append(appendText(buf, e.Action), byte(e.Subject.Kind))
	buf = appendText(appendText(buf, e.Subject.Entity), e.Subject.Resource)
	return appendText(binary.AppendUvarint(buf, e.Generation), e.Detail)
}

func parseEvent(value []byte) (limiter.AuditEvent, error) {
	r := &reader{buf: value}
	version := r.byte(eventVersion)
	e := limiter.AuditEvent{Time: time.UnixMilli(r.int(math.MinInt64, math.MaxInt64)).UTC(), Action: r.text()}
	e.Subject.Kind = limiter.RefKind(r.byte(byte(limiter.RefSystemLimits)))
	e.Subject.Entity, e.Subject.Resource = r.text(), r.text()
	e.Generation, e.Detail = r.uint(), r.text()
	e.ID = limiter.AuditID(e.Time, e.Generation)
	if r.fault || len(r.buf) > 0 || version != eventVersion {
		return limiter.AuditEvent{}, fmt.Errorf("an audit event: %w", errRecord)
	}
	return e, nil
}

// AuditEvents yields the changes of what ref names, oldest first: of an entity those
// of its limits too. A store without a file keeps none. After an error, the last that
// it yields, there may be more.
func (s *Store) AuditEvents(ctx context.Context, namespace string, ref limiter.Ref) iter.Seq2[limiter.AuditEvent, error] {
	return func(yield func(limiter.AuditEvent, error) bool) {
		err := s.usable(ctx)
		var events []limiter.AuditEvent
		if err == nil && s.disk != nil {
			events, err = s.disk.events(ctx, namespace, ref.AuditSubject())
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(limiter.AuditEvent{}, err)
		}
	}
}

// events reads the events of a subject. They are few against what all of them are, and
// a caller that is slow with them must not keep the file from being reused.
func (d *disk) events(ctx context.Context, namespace string, subject limiter.Ref) ([]limiter.AuditEvent, error) {
	var found []limiter.AuditEvent
	err := d.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Audit, auditPrefix(namespace), func(_, value []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := parseEvent(value)
			if err == nil && e.Subject.AuditSubject() == subject {
				found = append(found, e)
			}
			return err
		})
	})
	return found, unavailable(err)
}
