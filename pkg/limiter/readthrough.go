package limiter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// read reads the records of sc.refs, through the cache where the store is remote.
func (l *Limiter) read(ctx context.Context, now time.Time, namespace string, sc *scratch) (uint64, error) {
	switch {
	case sc.offline && l.cache != nil:
		// The store cannot report its generation. Only this limiter uses the fallback's buckets, so
		// the changes that it has seen order their limits.
		uses := l.uses.Load()
		generation, _ := l.cache.last(namespace, sc.refs, sc.records)
		return uses + generation, nil
	case l.cache == nil:
		return l.store.Read(ctx, namespace, sc.refs, sc.records)
	}
	generation, missing := l.cache.lookup(now, namespace, sc.refs, sc.records)
	if len(missing) == 0 {
		return generation, nil
	}
	return l.readMissing(ctx, now, namespace, sc, generation, missing)
}

// readMissing reads the records that the cache did not have from the store. If the deadline passes
// first, those last seen replace them.
func (l *Limiter) readMissing(ctx context.Context, now time.Time, namespace string, sc *scratch, generation uint64, missing []int) (uint64, error) {
	refs := make([]Ref, len(missing))
	for i, m := range missing {
		refs[i] = sc.refs[m].clone()
	}
	r, err := l.reads.await(ctx, now, strings.Clone(namespace), refs, generation)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		last, all := l.cache.last(namespace, sc.refs, sc.records)
		sc.late = true
		if !all {
			sc.unread, last = true, 0
		}
		return last, nil
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case r.err != nil:
		return 0, r.err
	}
	for i, m := range missing {
		sc.records[m] = r.records[i]
	}
	if len(missing) == len(sc.refs) {
		return r.generation, nil // none is older
	}
	return generation, nil
}
