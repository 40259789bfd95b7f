package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Heal brings a bucket up to a state that this process remembers, after its server came back with an
// older one, or without the bucket. It reports whether it changed anything. ns is the id of the
// namespace. Errors wrap those of limiter.Store.
func (b *Balances) Heal(ctx context.Context, ns string, m *lane.Memory) (healed bool, err error) {
	for try := 1; ; try++ {
		write, err := b.heal(ctx, ns, m)
		if err != nil || write == nil {
			return false, err
		}
		err = b.cfg.Items.Transact(ctx, "", []*schema.ItemWrite{write})
		if err = awsdb.Translate(err); err == nil {
			b.cfg.Engine().Changed(ns, m.Site.Bucket, m.Index)
			return true, nil
		}
		if !errors.Is(err, limiter.ErrConflict) && !awsdb.MayPass(err) || awsdb.Pause(ctx, b.cfg.Loop, try) != nil {
			return false, fmt.Errorf("bringing a bucket of %.100q up to what this process remembers: %w", m.Site.Bucket.Entity, err)
		}
	}
}

// heal plans the write of a state that is remembered; nil = none is needed.
func (b *Balances) heal(ctx context.Context, ns string, m *lane.Memory) (*schema.ItemWrite, error) {
	now := b.time(b.cfg.Now())
	if m.State.TTL > 0 && m.State.TTL*1000 < now || m.State.Shard.Retired {
		return nil, nil
	}
	items, err := b.cfg.Buckets.Read(ctx, ns, m.Site.Bucket)
	if err != nil {
		return nil, err
	}
	k := schema.BucketKey(ns, m.Site.Bucket, m.Index)
	found := items[m.Index]
	if found == nil {
		item := schema.NewBucketItem(ns, m.Site.Bucket, m.Index)
		maps.Copy(item, plan.Restore(m.State).Attributes())
		return schema.PutNew(item), nil
	}
	change, err := plan.Heal(found, m.State, now)
	if err != nil || change == nil {
		return nil, err
	}
	return change.Update(k), nil
}
