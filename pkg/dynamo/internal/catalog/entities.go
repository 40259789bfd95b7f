package catalog

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxDeletes is how many limits one change deletes: a transaction holds 100
// items, and four of them are the entity and the change's own.
const maxDeletes = 96

// PutEntity implements limiter.Catalog. The version of an entity is the
// generation that wrote it, so that one which is deleted and created again never
// has a version that was read before.
func (c *Catalog) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	if e.ID == "" {
		return limiter.Entity{}, fmt.Errorf("%w: an entity needs an id", limiter.ErrInvalid)
	}
	read := e.Version
	e.ID, e.Name, e.Parent, e.Metadata = strings.Clone(e.ID), strings.Clone(e.Name), strings.Clone(e.Parent), maps.Clone(e.Metadata)
	err := c.change(ctx, namespace, func(ctx context.Context, sp *space, generation uint64) (edit, error) {
		stored := limiter.Entity{CreatedAt: time.UnixMilli(now.UnixMilli()).UTC()}
		old, err := c.table.entity(ctx, sp.id, e.ID)
		if err != nil {
			return edit{}, err
		}
		if old != nil {
			stored = *old
		}
		if read != stored.Version {
			return edit{}, fmt.Errorf("%w: entity %.100q has version %d, not %d", limiter.ErrConflict, e.ID, stored.Version, read)
		}
		if err := c.checkHierarchy(ctx, sp, e); err != nil {
			return edit{}, err
		}
		e.CreatedAt, e.Version = stored.CreatedAt, generation
		return edit{
			writes: []types.TransactWriteItem{putEntity(c.table.name, sp.id, &e, read)},
			refs:   []limiter.Ref{limiter.EntityRef(e.ID)},
			event:  limiter.AuditEvent{Action: limiter.ActionPutEntity, Subject: limiter.EntityRef(e.ID), Detail: limiter.Record{Entity: &e}.Detail()},
		}, nil
	})
	if err != nil {
		return limiter.Entity{}, err
	}
	return e, nil
}

// checkHierarchy refuses a cycle, and a chain that is too long.
func (c *Catalog) checkHierarchy(ctx context.Context, sp *space, e limiter.Entity) error {
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

// putEntity puts an entity over the version that was read. The change's own
// condition implies this one, among programs that make changes as this one does.
func putEntity(table, ns string, e *limiter.Entity, read uint64) types.TransactWriteItem {
	put := &types.Put{
		TableName: &table, Item: schema.EntityItem(ns, e),
		ConditionExpression:      aws.String("attribute_not_exists(#pk) OR attribute_exists(#deleted)"),
		ExpressionAttributeNames: map[string]string{"#pk": schema.AttrPK, "#deleted": schema.AttrDeleted},
	}
	if read != 0 {
		put.ConditionExpression = aws.String("#version = :version AND attribute_not_exists(#deleted)")
		put.ExpressionAttributeNames = map[string]string{"#version": schema.AttrEntityVersion, "#deleted": schema.AttrDeleted}
		put.ExpressionAttributeValues = map[string]types.AttributeValue{":version": schema.NumberAttribute(read)}
	}
	return types.TransactWriteItem{Put: put}
}

// DeleteEntity implements limiter.Catalog. An entity with more limits than one
// change can delete takes several, the entity itself in the last of them, so that
// a call that failed on the way can be made again.
func (c *Catalog) DeleteEntity(ctx context.Context, namespace, id string) error {
	id = strings.Clone(id)
	for {
		more := false
		err := c.change(ctx, namespace, func(ctx context.Context, sp *space, generation uint64) (e edit, err error) {
			e, more, err = c.deletion(ctx, sp, id, generation)
			return e, err
		})
		if err != nil || !more {
			return err
		}
	}
}

// deletion deletes an entity and its limits, or, if there are more, the first
// maxDeletes of those.
func (c *Catalog) deletion(ctx context.Context, sp *space, id string, generation uint64) (e edit, more bool, err error) {
	e.event = limiter.AuditEvent{Action: limiter.ActionDeleteEntity, Subject: limiter.EntityRef(id)}
	expires := c.now().Add(schema.ChangeTTL)
	known := true // the resources of all limits
	for item, err := range c.table.scan(ctx, schema.QueryEntityLimits(c.table.name, sp.id, id)) {
		if err != nil {
			return edit{}, false, err
		}
		if item[schema.AttrDeleted] != nil {
			continue
		}
		if len(e.writes) == maxDeletes {
			more = true
			break
		}
		k, err := schema.ItemKey(c.table.name, item)
		if err != nil {
			return edit{}, false, err
		}
		e.writes = append(e.writes, putItem(c.table.name, schema.Tombstone(sp.id, k, limiter.RefEntityLimits, generation, expires)))
		r := schema.NewReader(c.table.name, k, item)
		e.refs = append(e.refs, limiter.EntityLimitsRef(id, r.Text(schema.AttrResource)))
		known = known && r.Fault == nil
	}
	e.event.Detail = fmt.Sprintf("%d limits, more to follow", len(e.writes))
	if !more {
		e.event.Detail = fmt.Sprintf("the entity and %d limits", len(e.writes))
		e.writes = append(e.writes, putItem(c.table.name, schema.Tombstone(sp.id, schema.EntityKey(sp.id, id), limiter.RefEntity, generation, expires)))
		e.refs = append(e.refs, limiter.EntityRef(id))
	}
	if !known {
		e.refs = nil // of a name too long to be kept: tell that anything changed
	}
	return e, more, nil
}

func putItem(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: item}}
}

// PutLimits implements limiter.Catalog.
func (c *Catalog) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	if ref.Kind == limiter.RefEntity || r.Entity != nil {
		return fmt.Errorf("%w: an entity is stored with PutEntity", limiter.ErrInvalid)
	}
	if ref.Kind > limiter.RefSystemLimits || r.OnUnavailable > limiter.Local {
		return fmt.Errorf("%w: there is no record of kind %d, or no policy %d", limiter.ErrInvalid, ref.Kind, r.OnUnavailable)
	}
	if ref.Kind != limiter.RefSystemLimits && r.OnUnavailable != limiter.Unset {
		return fmt.Errorf("%w: only the system's limits carry a policy", limiter.ErrInvalid)
	}
	ref.Entity, ref.Resource = strings.Clone(ref.Entity), strings.Clone(ref.Resource)
	return c.change(ctx, namespace, func(_ context.Context, sp *space, generation uint64) (edit, error) {
		e := edit{refs: []limiter.Ref{ref}, event: limiter.AuditEvent{Action: limiter.ActionPutLimits, Subject: ref, Detail: r.Detail()}}
		item := schema.LimitsItem(sp.id, ref, r, generation)
		if r.Empty() {
			e.event.Action = limiter.ActionDeleteLimits
			item = schema.Tombstone(sp.id, schema.KeyOfRef(sp.id, ref), ref.Kind, generation, c.now().Add(schema.ChangeTTL))
		}
		e.writes = []types.TransactWriteItem{putItem(c.table.name, item)}
		return e, nil
	})
}
