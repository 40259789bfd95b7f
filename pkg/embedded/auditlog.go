package embedded

import (
	"context"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditLog implements limiter.AuditLog.
type auditLog struct {
	catalog *catalog
	disk    *disk // nil without a file
}

// ListEvents implements limiter.AuditLog. A store without a file keeps no events.
func (a *auditLog) ListEvents(ctx context.Context, namespace string, subject limiter.Ref, p limiter.Page) (page limiter.PageOf[limiter.AuditEvent], err error) {
	p, err = p.Checked()
	if err == nil && p.After != "" {
		err = limiter.CheckAuditID(p.After)
	}
	if err != nil {
		return page, err
	}
	if err := a.catalog.usable(ctx); err != nil || a.disk == nil {
		return page, err
	}
	subject = subject.AuditSubject()
	first := least[limiter.AuditEvent]{most: p.Size + 1, compare: func(a, b limiter.AuditEvent) int { return strings.Compare(b.ID, a.ID) }}
	err = a.disk.events(ctx, namespace, func(e limiter.AuditEvent) {
		if e.Subject.AuditSubject() == subject && (p.After == "" || e.ID < p.After) {
			first.add(e)
		}
	})
	page.Items = first.sorted()
	if len(page.Items) > p.Size {
		page.Items = page.Items[:p.Size]
		page.Next = page.Items[p.Size-1].ID
	}
	return page, err
}

// events calls fn for the events of a namespace.
func (d *disk) events(ctx context.Context, namespace string, fn func(limiter.AuditEvent)) error {
	return unavailable(d.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Audit, auditPrefix(namespace), func(_, value []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := parseEvent(value)
			if err == nil {
				fn(e)
			}
			return err
		})
	}))
}
