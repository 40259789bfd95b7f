package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// pollInterval is how often a replica looks for changes of others. With the time
	// that a look takes it keeps well below the 5 s of G5.
	pollInterval = 2 * time.Second
	// maxMissedChanges is how many changes are read one by one; of more at once it is
	// cheaper to say that anything changed.
	maxMissedChanges = 200
)

// watch looks for changes of others at every tick until the context is done. Of looks
// in a row that fail the first is logged.
func (c *catalog) watch(ctx context.Context, ticks <-chan time.Time) {
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
		err := c.poll(ctx)
		if err != nil && ctx.Err() == nil && !failing && !errors.Is(err, awsdb.ErrOutage) { // of which there is a line of its own
			c.log.LogAttrs(ctx, slog.LevelWarn, "changes of limits and entities could not be looked for", slog.String("table", c.table), slog.Any("error", err))
		}
		failing = err != nil
	}
}

// poll reads the counters of all namespaces in use, and tells the subscriber of
// the changes that he does not know of. On an error he learns of the rest at the next.
func (c *catalog) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	var spaces []*space
	c.spaces.Range(func(_, sp any) bool {
		spaces = append(spaces, sp.(*space))
		return true
	})
	if len(spaces) == 0 {
		return nil
	}
	all, counters, err := c.readCounters(ctx, spaces)
	if err != nil {
		return err
	}
	c.sawAll(all)
	var failed error
	for i, sp := range spaces {
		failed = errors.Join(failed, c.catchUp(ctx, sp, counters[i], all))
	}
	return failed
}

// catchUp tells the subscriber of a namespace's changes.
func (c *catalog) catchUp(ctx context.Context, sp *space, counter counter, all uint64) error {
	if counter.err != nil {
		return counter.err
	}
	sp.saw(counter.value)
	from := sp.lastTold()
	refs, err := c.changes(ctx, sp, from, counter.value)
	if err != nil && awsdb.MayPass(err) {
		return err // the next look tells of it
	}
	c.tell(sp, from, counter.value, all, refs)
	return err
}

// changes returns what the changes behind one generation, up to another, changed;
// nil for anything: there are too many, or the record of one is missing.
func (c *catalog) changes(ctx context.Context, sp *space, from, to uint64) ([]limiter.Ref, error) {
	refs := []limiter.Ref{}
	if to <= from {
		return refs, nil
	}
	if to-from > maxMissedChanges {
		return nil, nil
	}
	next := from + 1
	for item, err := range items(ctx, c.client, schema.QueryChanges(c.table, sp.id, next, to)) {
		if err != nil {
			return nil, fmt.Errorf("changes of namespace %.100q: %w", sp.name, err)
		}
		if k, err := schema.ItemKey(c.table, item); err != nil || k != schema.ChangeKey(sp.id, next) {
			return nil, err
		}
		changed, err := schema.ParseChange(c.table, sp.id, next, item)
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
// meantime may be among them; one between what he knows and from means that refs
// are not all. An empty refs that is not nil says that the generation alone rose.
func (c *catalog) tell(sp *space, from, to, all uint64, refs []limiter.Ref) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if to <= sp.told && all <= sp.toldAll {
		return
	}
	if from > sp.told {
		refs = nil
	}
	c.announce(sp, to, all, refs)
}

// announce calls the subscriber; sp.mu is held.
func (c *catalog) announce(sp *space, to, all uint64, refs []limiter.Ref) {
	sp.told, sp.toldAll = max(sp.told, to), max(sp.toldAll, all)
	c.mu.Lock()
	subscriber := c.subscriber
	c.mu.Unlock()
	if subscriber != nil {
		subscriber(limiter.Change{Namespace: sp.name, Generation: sp.told + c.all.Load(), Refs: refs})
	}
}

// RaiseGeneration implements limiter.Catalog: it raises the table's counter, which
// is part of every namespace's generation. Other replicas learn that the
// generation alone rose: what they have read stays good.
func (c *catalog) RaiseGeneration(ctx context.Context) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	ctx, cancel := boundChange(ctx)
	defer cancel()
	raised, err := c.raiseAll(ctx)
	if err != nil {
		return fmt.Errorf("raising the generation in table %s: %w", c.table, err)
	}
	c.sawAll(raised)
	c.spaces.Range(func(_, v any) bool {
		sp := v.(*space)
		sp.mu.Lock()
		defer sp.mu.Unlock()
		c.announce(sp, 0, raised, nil)
		return true
	})
	return nil
}

// raiseAll raises the table's counter. One in doubt is raised again, which does
// no harm.
func (c *catalog) raiseAll(ctx context.Context) (uint64, error) {
	for try := 1; ; try++ {
		out, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                 &c.table,
			Key:                       schema.AllGenerationKey().Attributes(),
			UpdateExpression:          aws.String("ADD #generation :one"),
			ExpressionAttributeNames:  map[string]string{"#generation": schema.AttrCounter},
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": schema.NumberAttribute(1)},
			ReturnValues:              types.ReturnValueUpdatedNew,
		})
		if err == nil {
			return schema.ParseCounter(c.table, schema.AllGenerationKey(), out.Attributes)
		}
		if err = awsdb.Translate(err); !awsdb.MayPass(err) || awsdb.IsRefused(err) || awsdb.Pause(ctx, awsdb.Goroutines{}, try) != nil {
			return 0, err
		}
	}
}
