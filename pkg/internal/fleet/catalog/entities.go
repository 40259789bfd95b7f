package catalog

import (
	"context"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxDeletes is how many limits one change deletes: a transaction holds 100
// items, and five of them are the entity and the change's own.
const maxDeletes = 95

// checkHierarchy refuses a cycle, and a chain that is too long.
func (c editor) checkHierarchy(ctx context.Context, sp *space, e limiter.Entity) error {
	var failed error
	err := limiter.CheckHierarchy(e, func(id string) (limiter.Entity, bool) {
		parent, err := c.table.entity(ctx, sp.id, id)
		if err != nil || parent == nil {
			failed = err
			return limiter.Entity{}, false
		}
		return *parent, true
	})
	if failed != nil {
		return failed
	}
	return err
}

// deletion deletes an entity and its limits, or, if there are more, the first
// maxDeletes of those. left is the record that stays. It returns the number of all
// limits.
func (c editor) deletion(ctx context.Context, sp *space, id string, left limiter.Record, generation uint64) (e edit, all int, err error) {
	e.event = limiter.AuditEvent{Action: limiter.ActionDeleteEntity, Subject: limiter.EntityRef(id)}
	expires := c.now().Add(schema.ChangeTTL)
	known := true // the resources of all limits
	for item, err := range c.table.scan(ctx, schema.QueryEntityLimits(c.table.name, sp.id, id)) {
		if err != nil {
			return edit{}, 0, err
		}
		if item[schema.AttrDeleted] != nil {
			continue
		}
		all++
		if all > maxDeletes {
			continue
		}
		k, err := schema.ItemKey(c.table.name, item)
		if err != nil {
			return edit{}, 0, err
		}
		e.writes = append(e.writes, schema.NewPut(schema.Tombstone(sp.id, k, limiter.RefEntityLimits, generation, expires)))
		r := schema.NewReader(c.table.name, k, item)
		e.refs = append(e.refs, limiter.EntityLimitsRef(id, r.Text(schema.AttrResource)))
		known = known && r.Fault == nil
	}
	e.event.Detail = fmt.Sprintf("%d limits, more to follow", len(e.writes))
	if all <= maxDeletes {
		e.event.Detail = fmt.Sprintf("the entity and %d limits", len(e.writes))
		e.writes = append(e.writes, c.putBare(sp, limiter.EntityRef(id), left, generation))
		e.refs = append(e.refs, limiter.EntityRef(id))
	}
	if !known {
		e.refs = nil // of a name too long to be kept: any record may have changed
	}
	return e, all, nil
}

// putBare puts the record of an entity that is not stored: whether it is disabled.
func (c editor) putBare(sp *space, ref limiter.Ref, r limiter.Record, generation uint64) *schema.ItemWrite {
	if r.Disabled {
		return schema.NewPut(schema.DisabledItem(sp.id, ref.Entity, r, generation))
	}
	return schema.NewPut(schema.Tombstone(sp.id, schema.KeyOfRef(sp.id, ref), ref.Kind, generation, c.now().Add(schema.ChangeTTL)))
}

// editor makes the changes of records.
type editor struct {
	*Catalog

	begun uint64 // by the change of this generation the purge began that may end; 0 = any
}

var errAnotherPurge = fmt.Errorf("%w: another purge of the namespace has ended, or another has begun", limiter.ErrState)

// putEntity puts an entity over the version that was read. The change's own
// condition implies this one, among programs that make changes as this one does.
func putEntity(ns string, r limiter.Record, read uint64) *schema.ItemWrite {
	put := schema.NewPut(schema.EntityItem(ns, r))
	if read == 0 {
		put.RequireAbsent(schema.AttrCreatedAt)
		return put
	}
	put.Require(schema.AttrEntityVersion, "=", schema.NumberAttribute(read))
	put.RequireAbsent(schema.AttrDeleted)
	return put
}
