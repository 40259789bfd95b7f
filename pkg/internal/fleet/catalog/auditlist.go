package catalog

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditScan is the most events that are read for one page, and auditStep how many a query finds
// where a filter may leave most of them out.
const (
	auditScan = limiter.MaxPage
	auditStep = maxBatchGet
)

// ListEvents implements limiter.AuditLog. Events of a subject are one range of the table, read with
// strong consistency. Those of all subjects are one range of an index.
func (c *Catalog) ListEvents(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (page limiter.PageOf[limiter.AuditEvent], err error) {
	if p, err = p.Checked(); err != nil {
		return page, err
	}
	first, before, err := f.Range(p.After)
	if err != nil {
		return page, err
	}
	found, err := c.registered(ctx, namespace)
	if err != nil || found.ID == "" {
		return page, err
	}
	l := eventList{Catalog: c, ns: found.ID, filter: &f, first: first, before: before}
	for scanned := 0; len(page.Items) < p.Size && scanned < auditScan && !l.over; {
		size := p.Size - len(page.Items)
		if f.Principal != "" || f.Action != "" {
			size = min(auditStep, auditScan-scanned)
		}
		events, err := l.step(ctx, size)
		if err != nil {
			return limiter.PageOf[limiter.AuditEvent]{}, err
		}
		scanned += size
		page.Items = append(page.Items, events...)
	}
	switch {
	case len(page.Items) > p.Size:
		page.Items = page.Items[:p.Size]
		page.Next = page.Items[p.Size-1].ID
	case !l.over:
		page.Next = l.before
	}
	return page, nil
}

// eventList is a list of audit events under way.
type eventList struct {
	*Catalog

	ns            string
	filter        *limiter.AuditFilter
	first, before string // the range of ids that is still to be read
	over          bool   // all is read
}

// step reads at most size events, and returns those that the filter selects.
func (l *eventList) step(ctx context.Context, size int) (events []limiter.AuditEvent, err error) {
	if l.before != "" && l.before <= l.first {
		l.over = true
		return nil, nil
	}
	q := schema.QueryAudit(l.table.name, l.ns, l.filter.Subject, l.first, l.before)
	items, next, err := l.table.page(ctx, q, nil, size)
	if err == nil && l.filter.Subject == nil {
		items, err = l.behind(ctx, items)
	}
	if err != nil {
		return nil, err
	}
	l.over, l.before = next == nil, schema.EventID(schema.Key{SK: next[schema.AttrSK]})
	now := l.now()
	for _, item := range items {
		if schema.AuditOver(item, now) {
			continue
		}
		e, err := schema.ParseAudit(l.table.name, item)
		if err != nil {
			return nil, err
		}
		if l.filter.Selects(&e) {
			events = append(events, e)
		}
	}
	return events, nil
}

// behind returns the items of entries of an index, in their order.
func (l *eventList) behind(ctx context.Context, entries []map[string]types.AttributeValue) (items []map[string]types.AttributeValue, err error) {
	keys := make([]schema.Key, len(entries))
	for i, entry := range entries {
		if keys[i], err = schema.ItemKey(l.table.name, entry); err != nil {
			return nil, err
		}
	}
	found, err := l.table.read(ctx, keys)
	for _, k := range keys {
		if found[k] != nil {
			items = append(items, found[k])
		}
	}
	return items, err
}
