package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// edit is the content of a change at a generation.
type edit struct {
	writes []*schema.ItemWrite // at most 96
	refs   []limiter.Ref       // the records that it changes; nil = any
	event  limiter.AuditEvent
}

// change applies one change of a namespace in one transaction: its writes, the raised
// counter, the record and the counter for other replicas, and the audit event. prepare
// makes the content for the generation that the change will have. When another change comes
// between its reads and the transaction, the transaction is refused and prepare is called
// again.
func (c *Catalog) change(ctx context.Context, namespace string, prepare func(ctx context.Context, sp *space, generation uint64) (edit, error)) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	sp, err := c.use(ctx, namespace)
	if err != nil {
		return err
	}
	ctx, cancel := boundChange(ctx)
	defer cancel()
	if err := sp.begin(ctx); err != nil {
		return err
	}
	defer sp.end()
	for base := sp.newest().Changes; ; {
		e, err := prepare(ctx, sp, base+1)
		if err != nil {
			return err
		}
		e.event.Principal, e.event.Reason = limiter.PrincipalFrom(ctx), limiter.ReasonFrom(ctx)
		err = c.table.commit(ctx, c.transaction(sp, base, e))
		code, item := awsdb.ReasonAt(err, 0)
		switch {
		case err == nil:
			sp.saw(schema.Counters{Changes: base + 1})
			c.notify(sp, base, base+1, e.refs)
			return nil
		case code != awsdb.ConditionFailed:
			return fmt.Errorf("changing namespace %.100q in table %s: %w", namespace, c.table.name, awsdb.Translate(err))
		}
		if base, err = schema.ParseCounter(c.table.name, schema.GenerationKey(sp.id), item); err != nil {
			return err
		}
		sp.saw(schema.Counters{Changes: base})
	}
}

// firstWrite is the place of the first write of an edit in its transaction.
const firstWrite = 3

// transaction returns the writes that apply an edit, if the counter is base.
func (c *Catalog) transaction(sp *space, base uint64, e edit) []*schema.ItemWrite {
	now := c.now()
	e.event.Generation, e.event.Time, e.event.ID = base+1, now, limiter.AuditID(now, base+1)
	all := slices.Concat([]*schema.ItemWrite{
		schema.RaiseCounter(sp.id, base),
		schema.NewPut(schema.ChangeItem(sp.id, base+1, now, e.refs)),
		schema.TellCounter(sp.id, base+1),
	}, e.writes)
	if e.event.Action != "" {
		all = append(all, schema.NewPut(schema.AuditItem(sp.id, &e.event, c.auditRetention)))
	}
	return all
}
