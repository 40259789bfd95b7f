package catalog

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListEvents implements limiter.AuditLog.
func (c *Catalog) ListEvents(ctx context.Context, namespace string, subject limiter.Ref, p limiter.Page) (page limiter.PageOf[limiter.AuditEvent], err error) {
	if p, err = p.Checked(); err != nil {
		return page, err
	}
	found, err := c.registered(ctx, namespace)
	ns := found.ID
	if err != nil || ns == "" {
		return page, err
	}
	about := schema.AuditSubject(subject)
	q := schema.QueryAudit(c.table.name, ns, about)
	q.ScanIndexForward = aws.Bool(false)
	var from map[string]string
	if p.After != "" {
		k := schema.AuditKey(ns, about, p.After)
		from = map[string]string{schema.AttrPK: k.PK, schema.AttrSK: k.SK}
	}
	items, next, err := c.table.page(ctx, q, from, p.Size)
	if err != nil {
		return page, err
	}
	for _, item := range items {
		e, err := schema.ParseAudit(c.table.name, item)
		if err != nil {
			return limiter.PageOf[limiter.AuditEvent]{}, err
		}
		page.Items = append(page.Items, e)
	}
	if next != nil && len(page.Items) > 0 {
		page.Next = page.Items[len(page.Items)-1].ID
	}
	return page, nil
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
