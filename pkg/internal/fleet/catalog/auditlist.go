package catalog

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListEvents implements limiter.AuditLog.
func (c *Catalog) ListEvents(ctx context.Context, namespace string, subject limiter.Ref, p limiter.Page) (page limiter.PageOf[limiter.AuditEvent], err error) {
	if p, err = p.Checked(); err == nil && p.After != "" {
		err = limiter.CheckAuditID(p.After)
	}
	if err != nil {
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
