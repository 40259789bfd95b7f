package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// pollInterval is how often a replica reads the changes of others. With the time of a
	// read it is well below 5 s, within which a change must reach every replica.
	pollInterval = 2 * time.Second
	// maxMissedChanges is how many changes are read one by one; of more at once it is
	// cheaper to say that anything changed.
	maxMissedChanges = 200
)

// watch reads the changes of others at every tick until the context is done. Of reads in a
// row that fail the first is logged.
func (n *namespaces) watch(ctx context.Context, ticks <-chan time.Time) {
	if ticks == nil {
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for failing := false; ; {
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
		err := n.poll(ctx)
		if err != nil && ctx.Err() == nil && !failing && !errors.Is(err, awsdb.ErrOutage) { // of which there is a line of its own
			n.log.LogAttrs(ctx, slog.LevelWarn, "changes of limits and entities could not be looked for", slog.String("table", n.table.name), slog.Any("error", err))
		}
		failing = err != nil
	}
}

// poll reads the counters of all namespaces in use, and tells the subscriber of
// the changes that it was not told of. After an error it is told of the rest at the next
// tick.
func (n *namespaces) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	var spaces []*space
	var ids []string
	n.spaces.Range(func(_, v any) bool {
		sp := v.(*space)
		spaces, ids = append(spaces, sp), append(ids, sp.id)
		return true
	})
	if len(spaces) == 0 {
		return nil
	}
	all, counters, err := n.table.readCounters(ctx, ids...)
	if err != nil {
		return err
	}
	n.sawAll(all)
	failed := n.readForms(ctx, spaces)
	for i, sp := range spaces {
		failed = errors.Join(failed, n.catchUp(ctx, sp, counters[i], all))
	}
	return failed
}

// catchUp tells the subscriber of a namespace's changes.
func (n *namespaces) catchUp(ctx context.Context, sp *space, counter counter, all uint64) error {
	if counter.err != nil {
		return counter.err
	}
	sp.saw(counter.value)
	from := sp.lastTold()
	refs, err := n.changes(ctx, sp, from, counter.value)
	if err != nil && awsdb.MayPass(err) {
		return err // the next look tells of it
	}
	n.tell(sp, from, counter.value, all, refs)
	return err
}

// changes returns the refs of the records that changed after one generation, up to another.
// nil stands for any record: there are too many changes, or one has no record any more.
func (n *namespaces) changes(ctx context.Context, sp *space, from, to uint64) ([]limiter.Ref, error) {
	refs := []limiter.Ref{}
	if to <= from {
		return refs, nil
	}
	if to-from > maxMissedChanges {
		return nil, nil
	}
	next := from + 1
	for item, err := range n.table.scan(ctx, schema.QueryChanges(n.table.name, sp.id, next, to)) {
		if err != nil {
			return nil, fmt.Errorf("changes of namespace %.100q: %w", sp.name, err)
		}
		if k, err := schema.ItemKey(n.table.name, item); err != nil || k != schema.ChangeKey(sp.id, next) {
			return nil, err
		}
		changed, err := schema.ParseChange(n.table.name, sp.id, next, item)
		if err != nil || changed == nil {
			return nil, err
		}
		refs = append(refs, changed...)
		next++
	}
	if next != to+1 {
		return nil, nil
	}
	return refs, nil
}

func (sp *space) lastTold() uint64 {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.told
}

// tell tells the subscriber that the counter went from from to to by changes of
// refs, and that the table's counter is all. A change that he was told of in the
// meantime may be among them. If the subscriber was last told of an earlier generation
// than from, refs are not all. An empty refs that is not nil says that the generation alone rose.
func (n *namespaces) tell(sp *space, from, to, all uint64, refs []limiter.Ref) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if to <= sp.told && all <= sp.toldAll {
		return
	}
	if from > sp.told {
		refs = nil
	}
	n.announce(sp, to, all, refs)
}

// announce calls the subscriber; sp.mu is held.
func (n *namespaces) announce(sp *space, to, all uint64, refs []limiter.Ref) {
	sp.told, sp.toldAll = max(sp.told, to), max(sp.toldAll, all)
	n.mu.Lock()
	subscriber := n.subscriber
	n.mu.Unlock()
	if subscriber != nil {
		subscriber(limiter.Change{Namespace: sp.name, Generation: sp.told + n.all.Load(), Refs: refs})
	}
}
