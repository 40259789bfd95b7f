package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// streamTimeout bounds each call for an aggregator.
const streamTimeout = 10 * time.Second

// StreamLeases has the leases of the shards of streams in a table. A stream has a label. It holds nothing that is to be
// closed, and is safe for concurrent use.
type StreamLeases struct {
	items awsdb.Items
	table string
	age   time.Duration
	now   func() time.Time
}

// NewStreamLeases returns the leases in a table. One that is not written any more stays for age; 0 = for good. It makes
// no call.
func NewStreamLeases(items awsdb.Items, table string, age time.Duration, now func() time.Time) *StreamLeases {
	return &StreamLeases{items, table, age, now}
}

// List returns all leases of a stream, as aggregator.Leases does.
func (l *StreamLeases) List(ctx context.Context, label string) ([]aggregator.Lease, error) {
	in := schema.QueryStreamLeases(l.table, label)
	var all []aggregator.Lease
	for {
		ctx, stop := context.WithTimeout(ctx, streamTimeout)
		out, err := l.items.Query(ctx, in)
		stop()
		if err != nil {
			return nil, fmt.Errorf("leases in table %s: %w", l.table, awsdb.TranslateRead(err))
		}
		for _, item := range out.Items {
			all = append(all, schema.ParseStreamLease(l.table, item))
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		if len(in.ExclusiveStartKey) == 0 {
			return all, nil
		}
	}
}

// Write replaces a lease of a stream, as aggregator.Leases does, by one conditional write.
func (l *StreamLeases) Write(ctx context.Context, label string, before, after *aggregator.Lease) error {
	ctx, stop := context.WithTimeout(ctx, streamTimeout)
	defer stop()
	var expires time.Time
	if l.age > 0 {
		expires = l.now().Add(l.age)
	}
	_, err := l.items.Write(ctx, schema.PutStreamLease(label, before, after, expires))
	if _, refused := awsdb.ConditionItem(err); refused {
		return fmt.Errorf("shard %s: %w", after.Shard, aggregator.ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("lease of shard %s: %w", after.Shard, awsdb.Translate(err))
	}
	return nil
}
