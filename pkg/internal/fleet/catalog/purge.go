package catalog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Purge implements limiter.Purger. It waits for Config.PurgeWait before it deletes. Each
// transaction rests on the state of the namespace. One that is late is refused, so it deletes
// nothing that is stored after the purge. Records of charges and usage that come in late may stay,
// and go with the next purge.
func (c *Catalog) Purge(ctx context.Context, now time.Time, namespace string, progress func(deleted int)) error {
	edit := limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.BeginPurge}
	if _, err := c.Edit(ctx, now, namespace, edit); err != nil {
		return err
	}
	sp, err := c.use(ctx, namespace)
	if err != nil {
		return err
	}
	stored, err := c.table.readRecords(ctx, sp.id, []limiter.Ref{edit.Ref})
	if err != nil {
		return err
	}
	p := purge{Catalog: c, ns: sp.id, generation: stored[0].Generation, progress: progress}
	if err := p.wait(ctx, sp); err != nil {
		return err
	}
	for pass := 1; ; pass++ { // an index can miss new items, and show deleted ones
		before := p.deleted
		if err := p.pass(ctx); err != nil {
			return err
		}
		if p.deleted == before {
			break
		}
		if awsdb.Pause(ctx, c.table.loop, pass) != nil {
			return awsdb.ContextError(ctx)
		}
	}
	edit.Switch = limiter.EndPurge
	_, err = editor{Catalog: c, begun: p.generation}.amend(ctx, now, namespace, edit, false)
	return err
}

// purge is one that is under way.
type purge struct {
	*Catalog

	ns         string
	generation uint64 // of the change that began it
	deleted    int
	progress   func(int)
}

// purgeSince returns when this process first saw the purge that a change of a generation began.
func (sp *space) purgeSince(generation uint64, now time.Time) time.Time {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.purge != generation {
		sp.purge, sp.purgeSeen = generation, now
	}
	return sp.purgeSeen
}

// wait waits until no replica has a lease of a bucket.
func (p *purge) wait(ctx context.Context, sp *space) error {
	now := p.now()
	rest := p.purgeWait - now.Sub(sp.purgeSince(p.generation, now))
	if rest <= 0 {
		return awsdb.ContextError(ctx)
	}
	over, stop := p.table.loop.Within(context.WithoutCancel(ctx), min(rest, p.purgeWait))
	defer stop()
	if p.table.loop.Wait(ctx, over.Done()) != nil {
		return awsdb.ContextError(ctx)
	}
	return nil
}

// pass deletes all that it finds once.
func (p *purge) pass(ctx context.Context) error {
	batch := make([]schema.Key, 0, maxBatchWrite)
	for k, err := range p.keys(ctx) {
		if err != nil {
			return err
		}
		batch = append(batch, k)
		if len(batch) == maxBatchWrite {
			if err := p.delete(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return p.delete(ctx, batch)
}

// keys yields the keys of all that is to go. After an error, which is the last that it yields,
// there may be more.
func (p *purge) keys(ctx context.Context) iter.Seq2[schema.Key, error] {
	return func(yield func(schema.Key, error) bool) {
		for partition := range schema.IndexPartitions {
			for item, err := range p.table.scan(ctx, schema.QueryNamespace(p.table.name, p.ns, partition)) {
				var k schema.Key
				if err == nil {
					k, err = schema.ItemKey(p.table.name, item)
				}
				if err == nil && schema.PurgedLater(p.ns, k) {
					continue
				}
				if !yield(k, err) || err != nil {
					return
				}
			}
		}
		p.events(ctx, yield)
	}
}

// events yields the keys of the audit events of the system that are not about the namespace.
func (p *purge) events(ctx context.Context, yield func(schema.Key, error) bool) {
	system := limiter.SystemLimitsRef()
	for item, err := range p.table.scan(ctx, schema.QueryAudit(p.table.name, p.ns, &system, "", "")) {
		var e limiter.AuditEvent
		var k schema.Key
		if err == nil {
			e, err = schema.ParseAudit(p.table.name, item)
		}
		if err == nil {
			k, err = schema.ItemKey(p.table.name, item)
		}
		if err == nil && limiter.AboutNamespace(e.Action) {
			continue
		}
		if !yield(k, err) || err != nil {
			return
		}
	}
}

// delete deletes items while the namespace is being purged.
func (p *purge) delete(ctx context.Context, keys []schema.Key) error {
	if err := awsdb.ContextError(ctx); err != nil {
		return err
	}
	writes := []*schema.ItemWrite{schema.StillPurging(p.ns, p.generation)}
	for _, k := range keys {
		writes = append(writes, schema.NewDelete(k))
	}
	err := p.table.commit(ctx, writes)
	if code, _ := awsdb.ReasonAt(err, 0); code == awsdb.ConditionFailed {
		return errAnotherPurge
	}
	if err != nil {
		return fmt.Errorf("deleting %d items of table %s: %w", len(keys), p.table.name, awsdb.Translate(err))
	}
	p.deleted += len(keys)
	if p.progress != nil {
		p.progress(p.deleted)
	}
	return nil
}
