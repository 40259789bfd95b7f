package embedded

import (
	"bytes"
	"context"
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditScan is the most events that are read for one page.
const auditScan = 10_000

// auditLog implements limiter.AuditLog.
type auditLog struct {
	catalog *catalog
	disk    *disk // nil without a file
}

// ListEvents implements limiter.AuditLog. A store without a file keeps no events. Keys of events
// are in the order of time, so a list of any filter is a range.
func (a *auditLog) ListEvents(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (page limiter.PageOf[limiter.AuditEvent], err error) {
	p, err = p.Checked()
	if err != nil {
		return page, err
	}
	first, before, err := f.Range(p.After)
	if err != nil {
		return page, err
	}
	if err := a.catalog.usable(ctx); err != nil || a.disk == nil {
		return page, err
	}
	read := 0
	err = a.disk.eventsBefore(ctx, namespace, before, func(e limiter.AuditEvent) error {
		if e.ID < first {
			return errEnough
		}
		if len(page.Items) == p.Size || read == auditScan {
			page.Next = before
			return errEnough
		}
		read++
		before = e.ID
		if f.Selects(&e) {
			page.Items = append(page.Items, e)
		}
		return nil
	})
	return page, unavailable(enough(err))
}

// eventsBefore calls fn for the events of a namespace that have not expired and are older than that
// of an id, "" = all, the newest first.
func (d *disk) eventsBefore(ctx context.Context, namespace, id string, fn func(limiter.AuditEvent) error) error {
	prefix := auditPrefix(namespace)
	end := append(bytes.Clone(prefix), bytes.Repeat([]byte{math.MaxUint8}, 17)...) // above any time and generation
	if id != "" {
		at, generation, err := limiter.ParseAuditID(id)
		if err != nil {
			return err
		}
		end = auditKey(namespace, at, generation)
	}
	age := time.UnixMilli(max(d.cfg.Now().Add(-d.cfg.AuditRetention).UnixMilli(), 0)) // keys sort from 1970 on
	oldest := auditKey(namespace, age, math.MaxUint64)
	return d.file.View(func(tx *datafile.Tx) error {
		return tx.EachBack(datafile.Audit, prefix, end, func(key, value []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if bytes.Compare(key, oldest) <= 0 {
				return errEnough
			}
			e, err := parseEvent(value)
			if err != nil {
				return err
			}
			return fn(e)
		})
	})
}
