package embedded

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// edit is a change under way.
type edit struct {
	set        *recordSet // as before the edit
	namespace  string
	by         context.Context //nolint:containedctx // of the call that makes the change: its principal and reason
	generation uint64
	puts       []put

	action        string // "" = none that is audited
	subject       limiter.Ref
	detail        string
	before, after limiter.Record
}

type put struct {
	key    recordID
	record limiter.Record
}

func (e *edit) get(ref limiter.Ref) limiter.Record {
	return e.set.get(e.namespace, ref)
}

// put stores a record, or deletes it if it is empty.
func (e *edit) put(ref limiter.Ref, r limiter.Record) {
	e.puts = append(e.puts, put{recordID{Namespace: e.namespace, Ref: ref}, r})
}

// audit sets the audit event of the change.
func (e *edit) audit(action string, subject limiter.Ref, detail string) {
	e.action, e.subject, e.detail = action, subject, detail
}

// amend puts the record that an edit leads to, and sets its audit event.
func (e *edit) amend(now time.Time, asked limiter.Edit) (limiter.Edited, error) {
	ref := asked.Ref
	ref.Entity, ref.Resource = strings.Clone(ref.Entity), strings.Clone(ref.Resource)
	before := e.get(ref)
	after, err := asked.Apply(e.by, now, e.get(limiter.SystemLimitsRef()).State, before)
	if err != nil {
		return limiter.Edited{}, err
	}
	done := limiter.Edited{Before: before, After: after, Changed: !after.Equal(before)}
	switch {
	case asked.Deletes(after):
		done.Limits = e.deleteEntity(ref)
		done.Changed = done.Changed || done.Limits > 0
		return done, nil
	case after.Entity != nil:
		e.audit(limiter.ActionPutEntity, ref, after.Detail())
		done.After, err = e.entity(now, before, after)
	case !after.Stored():
		e.audit(limiter.ActionDeleteLimits, ref, "")
	default:
		e.audit(limiter.ActionPutLimits, ref, after.Detail())
	}
	if asked.Switch != limiter.Leave {
		e.audit(asked.Switch.Action(ref), ref, after.Detail())
	}
	e.put(ref, done.After)
	e.before, e.after = before, done.After
	return done, err
}

// entity returns the record of an entity that replaces the one before, if any. Its version is the
// generation of the edit, so an entity that is deleted and created again has another version.
func (e *edit) entity(now time.Time, before, after limiter.Record) (limiter.Record, error) {
	put := *after.Entity
	err := limiter.CheckHierarchy(put, func(id string) (limiter.Entity, bool) {
		r := e.get(limiter.EntityRef(id))
		if r.Entity == nil {
			return limiter.Entity{}, false
		}
		return *r.Entity, true
	})
	if err != nil {
		return limiter.Record{}, err
	}
	put.ID, put.Name, put.Parent = strings.Clone(put.ID), strings.Clone(put.Name), strings.Clone(put.Parent)
	put.Metadata = maps.Clone(put.Metadata)
	put.CreatedAt, put.Version = now, e.generation
	if before.Entity != nil {
		put.CreatedAt = before.Entity.CreatedAt
	}
	after.Entity = &put
	return after, nil
}

// deleteEntity deletes an entity and its limits, and returns the number of these limits.
func (e *edit) deleteEntity(ref limiter.Ref) int {
	e.before = e.get(ref)
	e.after = limiter.Record{Disabled: e.before.Disabled, Disabling: e.before.Disabling}
	e.put(ref, e.after)
	limits := e.set.limitsOf(e.namespace, ref.Entity)
	for _, r := range limits {
		e.put(r, limiter.Record{})
	}
	e.audit(limiter.ActionDeleteEntity, ref, fmt.Sprintf("the entity and %d limits", len(limits)))
	return len(limits)
}
