package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// manyPositions is how many positions a snapshot may have before those of shards that the stream
// has dropped are removed.
const manyPositions = 4

// Add implements aggregator.Snapshots by one conditional write.
func (s *Stream) Add(ctx context.Context, c *aggregator.Change) (aggregator.Sequence, error) {
	has, _, err := s.post(ctx, c)
	return has, err
}

// Post implements aggregator.Standings by the same write. A snapshot that cannot be read has reached
// nothing: to refuse the change would hold up the records behind it.
func (s *Stream) Post(ctx context.Context, c *aggregator.Change) (aggregator.Sequence, aggregator.Standing, error) {
	has, item, err := s.post(ctx, c)
	if err != nil {
		return "", aggregator.Standing{}, err
	}
	standing, _ := schema.ParseStanding(s.table, item)
	return has, standing, nil
}

// post makes the write of a change, and returns the snapshot as it is then.
func (s *Stream) post(ctx context.Context, c *aggregator.Change) (aggregator.Sequence, map[string]types.AttributeValue, error) {
	change, ok := schema.NewUsageChange(c)
	if !ok {
		return "", nil, fmt.Errorf("%w: %.100q or %.100q is no sequence number", limiter.ErrInvalid, string(c.First), string(c.Last))
	}
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	image, err := s.items.Write(ctx, change.Write())
	if item, refused := awsdb.ConditionItem(err); refused {
		has, found := schema.UsagePositions(item)[c.Shard]
		if !found {
			return "", nil, fmt.Errorf("%w: %s was refused, and has no position", limiter.ErrUnavailable, change.Of.Key(c.Snapshot.Bucket.Namespace))
		}
		return aggregator.Sequence(has), item, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", change.Of.Key(c.Snapshot.Bucket.Namespace), awsdb.TranslatePatient(err))
	}
	s.forget(ctx, &change, image)
	return "", image, nil
}

// forget removes positions of a snapshot in shards that the stream has dropped. One that fails is
// made by a later write.
func (s *Stream) forget(ctx context.Context, change *schema.UsageChange, item map[string]types.AttributeValue) {
	positions := schema.UsagePositions(item)
	if len(positions) <= manyPositions {
		return
	}
	if gone := s.shards.dropped(positions, s.now()); len(gone) > 0 {
		_, _ = s.items.Write(ctx, schema.ForgetPositions(change.Snapshot.Bucket.Namespace, &change.Of, gone))
	}
}

// List implements aggregator.Leases.
func (s *Stream) List(ctx context.Context) ([]aggregator.Lease, error) {
	all, err := s.leases.List(ctx, s.shards.place().label)
	if err == nil {
		s.shards.finished(all)
	}
	return all, err
}

// Write implements aggregator.Leases by one conditional write.
func (s *Stream) Write(ctx context.Context, before, after aggregator.Lease) error {
	return s.leases.Write(ctx, s.shards.place().label, &before, &after)
}
