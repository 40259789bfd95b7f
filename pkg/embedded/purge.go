package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// purger implements limiter.Purger.
type purger struct {
	editor  *editor
	sweeper *sweeper
	purging chan struct{} // has an element during a purge
}

func newPurger(e *editor, s *sweeper) *purger {
	return &purger{editor: e, sweeper: s, purging: make(chan struct{}, 1)}
}

// Purge implements limiter.Purger. One purge runs at a time, and others wait for it. Buckets that a
// charge or a settlement creates during a purge may remain.
func (r *purger) Purge(ctx context.Context, now time.Time, namespace string, progress func(deleted int)) error {
	select {
	case r.purging <- struct{}{}:
		defer func() { <-r.purging }()
	case <-ctx.Done():
		return contextErr(ctx)
	}
	edit := limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.BeginPurge}
	if _, err := r.editor.Edit(ctx, now, namespace, edit); err != nil {
		return err
	}
	p := purge{purger: r, namespace: namespace, progress: progress}
	// Rows last: the buckets' usage moves to rows.
	for _, part := range []func(context.Context) error{p.records, p.buckets, p.rows} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	edit.Switch = limiter.EndPurge
	_, err := r.editor.Edit(ctx, now, namespace, edit)
	return err
}

// ListOrphans implements limiter.Purger: without IDs there are no orphans.
func (r *purger) ListOrphans(ctx context.Context, p limiter.Page) (page limiter.PageOf[limiter.Namespace], err error) {
	if _, err := p.Checked(); err != nil {
		return page, err
	}
	if p.After != "" {
		return page, errCursor(p.After)
	}
	return page, r.editor.catalog.usable(ctx)
}

// PurgeOrphan implements limiter.Purger.
func (r *purger) PurgeOrphan(ctx context.Context, id string, _ func(deleted int)) error {
	if err := r.editor.catalog.usable(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: this store has no namespace with an id, such as %.100q", limiter.ErrNotFound, id)
}

// purge is a purge under way.
type purge struct {
	*purger

	namespace string
	deleted   int
	progress  func(int)
}

// errOver ends a purge of a namespace that a restore has replaced.
var errOver = fmt.Errorf("%w: a restore has replaced the namespace that was being purged", limiter.ErrState)

// goesOn reports whether the namespace is still being purged: a restore can change that.
func (p *purge) goesOn() bool {
	return p.editor.namespaces.namespace(p.namespace).State == limiter.NamespacePurging
}

func (p *purge) count(n int) {
	p.deleted += n
	if n > 0 && p.progress != nil {
		p.progress(p.deleted)
	}
}

// records deletes entities and limits, a part at a time. The record of the namespace itself has its
// state, and is not deleted.
func (p *purge) records(ctx context.Context) error {
	all := p.editor.catalog.refs(p.namespace, func(ref limiter.Ref) bool { return ref.Kind != limiter.RefSystemLimits })
	for refs := range slices.Chunk(all, sweptRows) {
		err := p.editor.catalog.change(ctx, p.namespace, func(e *edit) error {
			if !p.goesOn() {
				return errOver
			}
			for _, ref := range refs {
				e.put(ref, limiter.Record{})
			}
			return nil
		})
		if err != nil {
			return err
		}
		p.count(len(refs))
	}
	return nil
}

// buckets drops the buckets, shard by shard.
func (p *purge) buckets(ctx context.Context) error {
	s := p.sweeper
	for i := range s.shards {
		if err := contextErr(ctx); err != nil {
			return err
		}
		n, last := p.shard(&s.shards[i])
		if last != nil {
			if err := last.wait(ctx); err != nil {
				return err
			}
		}
		p.count(n)
	}
	return nil
}

func (p *purge) shard(sh *shard) (n int, last *batch) {
	s := p.sweeper
	now := s.cfg.Now().UnixMilli()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !p.goesOn() { // checked under the lock, so that no bucket of a recreated namespace is dropped
		return 0, nil
	}
	for hash, b := range sh.buckets {
		for b != nil {
			next := b.next
			if b.namespace.Value() == p.namespace {
				n++
				if pending := s.remove(sh, hash, b, now, commitPurge); pending != nil {
					last = pending
				}
			}
			b = next
		}
	}
	return n, last
}

// rows deletes usage and audit events, except those of the namespace itself.
func (p *purge) rows(ctx context.Context) error {
	if p.sweeper.disk == nil {
		return nil
	}
	for {
		if err := contextErr(ctx); err != nil {
			return err
		}
		gone, err := p.found()
		if err != nil || len(gone) == 0 {
			return err
		}
		if err := p.sweeper.disk.write(ctx, gone...); err != nil {
			return err
		}
		p.count(len(gone))
	}
}

// purgedRows is the number of rows that one search returns. Each search reads all rows from the
// start.
const purgedRows = 10 * sweptRows

func (p *purge) found() (gone []change, err error) {
	take := func(t datafile.Table, key []byte) error {
		if len(gone) == purgedRows {
			return errEnough
		}
		gone = append(gone, change{table: t, key: slices.Clone(key)})
		return nil
	}
	err = p.sweeper.disk.file.View(func(tx *datafile.Tx) error {
		err := tx.Each(datafile.Audit, auditPrefix(p.namespace), func(key, value []byte) error {
			if e, err := parseEvent(value); err != nil || limiter.AboutNamespace(e.Action) {
				return err
			}
			return take(datafile.Audit, key)
		})
		if err != nil {
			return err
		}
		return tx.Each(datafile.Usage, nil, func(key, _ []byte) error {
			if !usageIn(key, p.namespace) {
				return nil
			}
			return take(datafile.Usage, key)
		})
	})
	return gone, unavailable(enough(err))
}
