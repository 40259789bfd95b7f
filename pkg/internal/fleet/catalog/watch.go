package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
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

// watch reads the changes of others at every tick until the context is done. The first of
// several failed reads in a row is logged.
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
			n.log.LogAttrs(ctx, slog.LevelWarn, "changes of limits and entities could not be read", slog.String("table", n.table.name), slog.Any("error", err))
		}
		if failing && err == nil {
			n.checkIDs(ctx)
		}
		failing = err != nil
	}
}

// checkIDs logs that the table was made anew while it could not be read: its namespaces have other IDs than those in use
// here. A store whose server has histories is told by them, see Forget.
func (n *namespaces) checkIDs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	for _, sp := range n.inUse() {
		if sp.base > 0 {
			continue
		}
		if ns, err := n.table.lookup(ctx, sp.name); err == nil && ns.ID != sp.id {
			n.log.LogAttrs(ctx, slog.LevelError, "the table was made anew while this process ran, which shares no limit with replicas that start later: restart it",
				slog.String("table", n.table.name), slog.String("namespace", sp.name))
			return
		}
	}
}

// poll reads the counters of all namespaces in use, and notifies the subscriber of
// changes that are new to it. After an error the rest follows at the next tick.
func (n *namespaces) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	spaces := n.inUse()
	if len(spaces) == 0 {
		return nil
	}
	ids := make([]string, len(spaces))
	for i, sp := range spaces {
		ids[i] = sp.id
	}
	counters, err := n.table.readCounters(ctx, ids...)
	if err != nil {
		return err
	}
	var failed error
	for i, sp := range spaces {
		failed = errors.Join(failed, n.catchUp(ctx, sp, counters[i]))
	}
	return failed
}

// catchUp notifies the subscriber of a namespace's changes. The counter of configurations stays as
// this process raised it last: limits of its file are as new as its file, not as one that another
// replica has read since.
func (n *namespaces) catchUp(ctx context.Context, sp *space, found counters) error {
	if found.err != nil {
		return found.err
	}
	sp.saw(schema.Counters{Changes: found.Changes})
	from := sp.lastNotified()
	refs, err := n.changes(ctx, sp, from, found.Changes)
	if err != nil && awsdb.MayPass(err) {
		return err // the next poll reports it
	}
	n.notify(sp, from, found.Changes, refs)
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
	next := from + 1 // rule: changes between two polls are told
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

func (sp *space) lastNotified() uint64 {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.notified
}

// notify tells the subscriber that the counter of changes rose from one value to another by changes
// of refs. The subscriber may know some of them. Where its last notice was of less than from, refs
// are not all.
func (n *namespaces) notify(sp *space, from, to uint64, refs []limiter.Ref) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if to <= sp.notified {
		return
	}
	if from > sp.notified {
		refs = nil
	}
	sp.notified = to
	n.announce(sp, refs)
}

// announce calls the subscriber with the generation of the last notice; sp.mu is held.
func (n *namespaces) announce(sp *space, refs []limiter.Ref) {
	n.mu.Lock()
	subscriber := n.subscriber
	n.mu.Unlock()
	if subscriber != nil {
		generation := sp.generation(schema.Counters{Changes: sp.notified, Configuration: sp.known.Configuration})
		subscriber(limiter.Change{Namespace: sp.name, Generation: generation, Refs: refs})
	}
}
