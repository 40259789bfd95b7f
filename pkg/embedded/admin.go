package embedded

import (
	"context"
	"iter"
	"slices"
	"unique"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Namespaces yields the names of the namespaces that buckets, entities or limits were
// ever kept in, in order; one that was purged stays. A store without a file knows those that
// have buckets, entities or limits now. After an error, the last that it yields, there may be
// more.
func (s *Store) Namespaces(ctx context.Context) iter.Seq2[string, error] {
	return s.names(ctx, func() ([]string, error) {
		var names []string
		if s.disk != nil {
			err := s.disk.file.View(func(tx *datafile.Tx) error {
				return tx.Each(datafile.Namespaces, nil, func(_, value []byte) error {
					names = append(names, namespaceIn(value))
					return nil
				})
			})
			return names, unavailable(err)
		}
		s.catalog.mu.RLock()
		defer s.catalog.mu.RUnlock()
		for k := range s.catalog.records {
			names = append(names, k.namespace)
		}
		return append(names, s.namesOfBuckets()...), nil
	})
}

// namesOfBuckets returns the names of the namespaces that have buckets, each once.
func (s *Store) namesOfBuckets() []string {
	seen := make(map[unique.Handle[string]]bool)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, b := range sh.buckets {
			for ; b != nil; b = b.next {
				seen[b.namespace] = true
			}
		}
		sh.mu.Unlock()
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name.Value())
	}
	return names
}

// names yields what find finds, each once and in order.
func (s *Store) names(ctx context.Context, find func() ([]string, error)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		err := s.usable(ctx)
		if err == nil {
			names, err = find()
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func (s *Store) usable(ctx context.Context) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	if s.catalog.closed.Load() {
		return limiter.ErrClosed
	}
	return nil
}

// Purge deletes everything in a namespace: entities, limits, buckets, usage and audit
// events; the name stays, and marks of settlements stay until they expire. progress,
// unless nil, is called with the number of records deleted so far. A call that failed
// on the way can be made again and goes on where that one ended. What others use meanwhile may
// stay; so do the two events that mark the beginning and the end, until they are too old.
func (s *Store) Purge(ctx context.Context, namespace string, progress func(deleted int)) error {
	p := purge{store: s, namespace: namespace, progress: progress}
	mark := func(detail string) error {
		return s.change(ctx, namespace, func(e *edit) error {
			e.say(limiter.ActionPurgeNamespace, limiter.SystemLimitsRef(), detail)
			p.begun = e.generation
			return nil
		})
	}
	if err := mark("begun"); err != nil {
		return err
	}
	// Usage after the buckets, which leave theirs in rows.
	for _, part := range []func(context.Context) error{p.records, p.buckets, p.rows} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return mark("ended")
}

// purge is one that is under way.
type purge struct {
	store     *Store
	namespace string
	begun     uint64 // generation of the event that says so
	deleted   int
	progress  func(int)
}

func (p *purge) count(n int) {
	if p.deleted += n; n > 0 && p.progress != nil {
		p.progress(p.deleted)
	}
}

// records deletes entities and limits, a part at a time.
func (p *purge) records(ctx context.Context) error {
	all := p.store.catalog.refs(p.namespace, func(limiter.Ref, limiter.Record) bool { return true })
	for refs := range slices.Chunk(all, sweptRows) {
		err := p.store.change(ctx, p.namespace, func(e *edit) error {
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
	s := p.store
	for i := range s.shards {
		n, last := p.shard(&s.shards[i])
		if last != nil {
			if err := last.wait(ctx); err != nil {
				return err
			}
		}
		p.count(n)
	}
	return contextErr(ctx)
}

func (p *purge) shard(sh *shard) (n int, last *batch) {
	s := p.store
	now := s.cfg.Now().UnixMilli()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for hash, b := range sh.buckets {
		for b != nil {
			next := b.next
			if b.namespace.Value() == p.namespace {
				n++
				if pending := s.retire(sh, hash, b, now, purged); pending != nil {
					last = pending
				}
			}
			b = next
		}
	}
	return n, last
}

// rows deletes usage and audit events, but the one that says that the purge has begun.
func (p *purge) rows(ctx context.Context) error {
	if p.store.disk == nil {
		return nil
	}
	for {
		gone, err := p.found()
		if err != nil || len(gone) == 0 {
			return err
		}
		if err := p.store.disk.write(ctx, gone...); err != nil {
			return err
		}
		p.count(len(gone))
	}
}

// purgedRows is how many rows are looked for at once: to find more, all are read again.
const purgedRows = 10 * sweptRows

func (p *purge) found() (gone []change, err error) {
	take := func(t datafile.Table, key []byte) error {
		if len(gone) == purgedRows {
			return errEnough
		}
		gone = append(gone, change{table: t, key: slices.Clone(key)})
		return nil
	}
	err = p.store.disk.file.View(func(tx *datafile.Tx) error {
		err := tx.Each(datafile.Audit, auditPrefix(p.namespace), func(key, value []byte) error {
			if e, err := parseEvent(value); err != nil || e.Generation >= p.begun {
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
