package changestream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
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
	out, err := s.client.UpdateItem(ctx, change.Input(s.table))
	if item, refused := awsdb.ConditionItem(err); refused {
		has, found := schema.UsagePositions(item)[c.Shard]
		if !found {
			return "", nil, fmt.Errorf("%w: %s was refused, and has no position", limiter.ErrUnavailable, change.Of.Key(c.Snapshot.Bucket.Namespace))
		}
		return aggregator.Sequence(has), item, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", change.Of.Key(c.Snapshot.Bucket.Namespace), translateCall(err))
	}
	s.forget(ctx, &change, out.Attributes)
	return "", out.Attributes, nil
}

// translateCall returns the error of a call for a change. A role can get a permission that it lacks: the
// change is not refused for good, and its records wait.
func translateCall(err error) error {
	if kind := awsdb.KindOf(err); errors.Is(kind, awsdb.ErrDenied) {
		return fmt.Errorf("%w: %w: %w", limiter.ErrUnavailable, awsdb.ErrDenied, err)
	}
	return awsdb.Translate(err)
}

// forget removes positions of a snapshot in shards that the stream has dropped. One that fails is
// made by a later write.
func (s *Stream) forget(ctx context.Context, change *schema.UsageChange, item map[string]types.AttributeValue) {
	positions := schema.UsagePositions(item)
	if len(positions) <= manyPositions {
		return
	}
	if gone := s.dropped(positions); len(gone) > 0 {
		_, _ = s.client.UpdateItem(ctx, schema.ForgetPositions(s.table, change.Snapshot.Bucket.Namespace, &change.Of, gone))
	}
}

// shardAge is how old a shard is that the stream cannot have any more where its list lacks it.
// Records stay for a day, and a list may be a little old.
const shardAge = 48 * time.Hour

// dropped returns those of the shards that the stream has dropped: shards that are done, and old
// ones. An aggregator without leases has no list of shards that are done.
func (s *Stream) dropped(positions map[string]schema.Position) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []string
	for shard := range positions {
		if s.gone[shard] || s.there != nil && !s.there[shard] && old(shard, s.now()) {
			gone = append(gone, shard)
		}
	}
	return gone
}

// old reports whether a shard is older than shardAge, by the time in its id: "shardId-", Unix
// milliseconds in 20 digits, "-", and more. A shard with another id is not.
func old(shard string, now time.Time) bool {
	digits, _, _ := strings.Cut(strings.TrimPrefix(shard, "shardId-"), "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	return err == nil && len(digits) == 20 && now.Sub(time.UnixMilli(ms)) > shardAge
}

// List implements aggregator.Leases.
func (s *Stream) List(ctx context.Context) ([]aggregator.Lease, error) {
	in := schema.QueryStreamLeases(s.table, s.place().label)
	var all []aggregator.Lease
	for {
		ctx, stop := context.WithTimeout(ctx, callTimeout)
		out, err := s.client.Query(ctx, in)
		stop()
		if err != nil {
			return nil, fmt.Errorf("leases in table %s: %w", s.table, awsdb.TranslateRead(err))
		}
		for _, item := range out.Items {
			all = append(all, schema.ParseStreamLease(s.table, item))
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		if len(in.ExclusiveStartKey) == 0 {
			s.finished(all)
			return all, nil
		}
	}
}

// finished notes the shards that are done.
func (s *Stream) finished(leases []aggregator.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = make(map[string]bool)
	for _, l := range leases {
		if l.Done {
			s.done[l.Shard] = true
		}
	}
}

// Write implements aggregator.Leases by one conditional write.
func (s *Stream) Write(ctx context.Context, before, after aggregator.Lease) error {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	_, err := s.client.PutItem(ctx, schema.PutStreamLease(s.table, s.place().label, &before, &after, s.now().Unix()))
	if _, refused := awsdb.ConditionItem(err); refused {
		return fmt.Errorf("shard %s: %w", after.Shard, aggregator.ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("lease of shard %s: %w", after.Shard, awsdb.Translate(err))
	}
	return nil
}
