package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// RaiseGeneration implements limiter.Catalog. It raises the counter of configurations of each
// namespace in use in this process, and of each other one before its first use. A caller that may
// write one namespace alone can so raise it. Other replicas learn that the generation alone
// rose: the records that they have read stay good. After an error some may be raised.
func (n *namespaces) RaiseGeneration(ctx context.Context) error {
	if err := n.usable(ctx); err != nil {
		return err
	}
	ctx, cancel := boundChange(ctx)
	defer cancel()
	n.mu.Lock()
	n.raises++
	n.mu.Unlock()
	return n.raise(ctx, n.inUse()...)
}

// enter puts a namespace in use that was just loaded. Where generations were raised by this
// process, it raises this one first, so that no namespace misses the call that came meanwhile.
func (n *namespaces) enter(ctx context.Context, sp *space) error {
	for raised := uint64(0); ; {
		n.mu.Lock()
		raises := n.raises
		if raises == raised {
			n.spaces.Store(sp.name, sp)
			n.mu.Unlock()
			return nil
		}
		n.mu.Unlock()
		if err := n.raise(ctx, sp); err != nil {
			return err
		}
		raised = raises
	}
}

// raise raises the counters of configurations of namespaces, and tells the subscriber.
func (n *namespaces) raise(ctx context.Context, spaces ...*space) error {
	all, err := n.raiseAll(ctx, spaces)
	for i := 0; err == nil && i < len(spaces); i++ {
		err = n.raiseOne(ctx, spaces[i], all)
	}
	if err != nil {
		return fmt.Errorf("raising the generation in table %s: %w", n.table.name, err)
	}
	return nil
}

// raiseAll raises the table's counter where one of the namespaces has form 1: replicas of version 1
// may run, and read it. It returns the value; 0 where it is not raised.
func (n *namespaces) raiseAll(ctx context.Context, spaces []*space) (uint64, error) {
	if !slices.ContainsFunc(spaces, func(sp *space) bool { return sp.form.Load() == schema.FormOld }) {
		return 0, nil
	}
	raised, err := n.table.count(ctx, schema.RaiseAll(n.table.name))
	if err != nil {
		return 0, err
	}
	return schema.ParseCounter(n.table.name, schema.AllGenerationKey(), raised)
}

// raiseOne raises a namespace's counter of configurations by one at least, and to all at least: limits
// of version 1 have the table's counter in their generation. Where all is 0, it rises above the table's
// counter of when the namespace was loaded. In the present form that one rises no more.
func (n *namespaces) raiseOne(ctx context.Context, sp *space, all uint64) error {
	if all == 0 && sp.all > 0 {
		all = sp.all + 1
	}
	err := limiter.ErrConflict // with being as high already
	var raised map[string]types.AttributeValue
	if sp.newest().Configuration < all {
		raised, err = n.table.count(ctx, schema.LiftConfiguration(n.table.name, sp.id, all))
	}
	if errors.Is(err, limiter.ErrConflict) {
		raised, err = n.table.count(ctx, schema.RaiseConfiguration(n.table.name, sp.id))
	}
	if err != nil {
		return err
	}
	to, err := schema.ParseCounters(n.table.name, sp.id, raised)
	if err != nil {
		return err
	}
	sp.saw(to)
	sp.mu.Lock()
	defer sp.mu.Unlock()
	n.announce(sp, to, nil)
	return nil
}

// count makes an update that raises a counter, and returns the attribute as it is then. One of unknown
// outcome is made again, which does no harm.
func (t *table) count(ctx context.Context, in *dynamodb.UpdateItemInput) (map[string]types.AttributeValue, error) {
	for try := 1; ; try++ {
		out, err := t.client.UpdateItem(ctx, in)
		if err == nil {
			return out.Attributes, nil
		}
		if err = awsdb.Translate(err); !awsdb.MayPass(err) || awsdb.IsRefused(err) || awsdb.Pause(ctx, t.loop, try) != nil {
			return nil, err
		}
	}
}
