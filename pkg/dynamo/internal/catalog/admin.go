package catalog

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// AuditEvents yields the changes of the record that ref names, oldest first; for an entity
// also those of its limits. An error is the last that it yields: there may be more events.
func (c *Catalog) AuditEvents(ctx context.Context, namespace string, ref limiter.Ref) iter.Seq2[limiter.AuditEvent, error] {
	return each(ctx, c, namespace,
		func(sp *space) *dynamodb.QueryInput {
			return schema.QueryAudit(c.table.name, sp.id, schema.AuditSubject(ref))
		},
		func(item map[string]types.AttributeValue) (limiter.AuditEvent, error) {
			return schema.ParseAudit(c.table.name, item)
		})
}

// Children yields the ids of the entities with a parent, in no order that means
// anything. An id of more than 4 KiB stands as it does in keys. A change of the
// last second may be missing. After an error, the last that it
// yields, there may be more.
func (c *Catalog) Children(ctx context.Context, namespace, parent string) iter.Seq2[string, error] {
	return each(ctx, c, namespace,
		func(sp *space) *dynamodb.QueryInput { return schema.QueryChildren(c.table.name, sp.id, parent) },
		func(item map[string]types.AttributeValue) (string, error) {
			return nameIn(c.table.name, item, schema.AttrEntity, schema.AttrGSI1SK, "CHILD#")
		})
}

// ListLimits yields the ids of the entities with limits of their own for a
// resource, or for limiter.DefaultResource, in the way of Children.
func (c *Catalog) ListLimits(ctx context.Context, namespace, resource string) iter.Seq2[string, error] {
	return each(ctx, c, namespace,
		func(sp *space) *dynamodb.QueryInput { return schema.QueryCustomLimits(c.table.name, sp.id, resource) },
		func(item map[string]types.AttributeValue) (string, error) {
			return nameIn(c.table.name, item, schema.AttrEntity, schema.AttrGSI3SK, "")
		})
}

// nameIn returns a name that an item of an index is about: in full where it was
// kept, else as it stands in the index's key, behind prefix.
func nameIn(table string, item map[string]types.AttributeValue, attr, keyAttr, prefix string) (string, error) {
	k, err := schema.ItemKey(table, item)
	if err != nil {
		return "", err
	}
	r := schema.NewReader(table, k, item)
	name := strings.TrimPrefix(r.Text(keyAttr), prefix)
	if item[attr] != nil {
		name = r.Text(attr)
	}
	if r.Fault != nil {
		return "", r.Fault
	}
	return name, nil
}

// each runs a query of a namespace and yields its items as parse reads them.
func each[V any](ctx context.Context, c *Catalog, namespace string, query func(*space) *dynamodb.QueryInput, parse func(map[string]types.AttributeValue) (V, error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		err := c.usable(ctx)
		var sp *space
		if err == nil {
			sp, err = c.use(ctx, namespace)
		}
		if err != nil {
			yield(none, err)
			return
		}
		for item, err := range c.table.scan(ctx, query(sp)) {
			if err != nil {
				yield(none, err)
				return
			}
			v, err := parse(item)
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Purge deletes everything in a namespace: entities, limits, buckets and audit events. The
// name stays registered, and marks of settlements stay until they expire. progress, unless
// nil, is called with the number of items deleted so far. A call that failed can be made
// again, and goes on where that one ended. Records that are written meanwhile may stay. The
// two changes that mark the beginning and the end stay until they expire.
func (c *Catalog) Purge(ctx context.Context, namespace string, progress func(deleted int)) error {
	var begun uint64
	mark := func(detail string) error {
		return c.change(ctx, namespace, func(_ context.Context, _ *space, generation uint64) (edit, error) {
			begun = generation
			return edit{event: limiter.AuditEvent{Action: limiter.ActionPurgeNamespace, Subject: limiter.SystemLimitsRef(), Detail: detail}}, nil
		})
	}
	if err := mark("begun"); err != nil {
		return err
	}
	sp, err := c.use(ctx, namespace)
	if err != nil {
		return err
	}
	kept := func(k schema.Key) bool {
		return k == schema.ChangeKey(sp.id, begun) || k.PK == schema.AuditPK(sp.id, schema.SubjectSystem) && strings.HasSuffix(k.SK, limiter.AuditID(time.Time{}, begun)[24:])
	}
	deleted := 0
	for partition := range schema.IndexPartitions {
		err := c.table.deleteAll(ctx, schema.QueryNamespace(c.table.name, sp.id, partition), kept, func(n int) {
			if deleted += n; progress != nil {
				progress(deleted)
			}
		})
		if err != nil {
			return err
		}
	}
	return mark("ended")
}
