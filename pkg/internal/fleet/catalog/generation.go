package catalog

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
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

// raise raises the counters of configurations of namespaces by one, and notifies the
// subscriber.
func (n *namespaces) raise(ctx context.Context, spaces ...*space) error {
	for _, sp := range spaces {
		if err := n.raiseOne(ctx, sp); err != nil {
			return fmt.Errorf("raising the generation in table %s: %w", n.table.name, err)
		}
	}
	return nil
}

func (n *namespaces) raiseOne(ctx context.Context, sp *space) error {
	raised, err := n.table.count(ctx, schema.RaiseConfiguration(sp.id))
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
	n.announce(sp, nil)
	return nil
}

// count makes an update that raises a counter, and returns the attribute as it is then. One of unknown
// outcome is made again, which does no harm.
func (t *table) count(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	for try := 1; ; try++ {
		image, err := t.items.Write(ctx, w)
		if err == nil {
			return image, nil
		}
		if err = awsdb.Translate(err); !awsdb.MayPass(err) || awsdb.IsRefused(err) || awsdb.Pause(ctx, t.loop, try) != nil {
			return nil, err
		}
	}
}
