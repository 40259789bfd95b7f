package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// StreamsClient is the part of DynamoDB Streams that is needed; *dynamodbstreams.Client is one.
type StreamsClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// callTimeout bounds each call.
const callTimeout = 10 * time.Second

// NewStreamsClient returns a client of the streams of tables, which retries. It makes no call.
// Errors wrap limiter.ErrInvalid.
func NewStreamsClient(ctx context.Context, cfg ClientConfig) (*dynamodbstreams.Client, error) {
	return awsdb.NewStreamsClient(ctx, cfg)
}

// Stream is the stream of a table, and the usage snapshots and leases in the table. It is
// an aggregator.Source, aggregator.Snapshots and aggregator.Leases. It is safe for concurrent use.
type Stream struct {
	*catalog.BudgetNotes
	*catalog.Progress

	leases *catalog.StreamLeases
	items  awsdb.Items
	stream StreamsClient
	table  string
	now    func() time.Time

	shards streamShards
}

var (
	_ aggregator.Source    = (*Stream)(nil)
	_ aggregator.Standings = (*Stream)(nil)
	_ aggregator.Leases    = (*Stream)(nil)
)

// OpenStream finds the stream of a table. Errors wrap limiter.ErrInvalid where the table has none,
// or one without both images, and limiter.ErrUnavailable where another try may help. now is the
// clock by which leases that are not needed any more expire; nil = time.Now.
func OpenStream(ctx context.Context, client Client, stream StreamsClient, table string, now func() time.Time) (*Stream, error) {
	if now == nil {
		now = time.Now
	}
	items := awsdb.ItemsOf(client, table)
	at, err := findStream(ctx, items, table)
	if err != nil {
		return nil, err
	}
	return &Stream{
		BudgetNotes: catalog.NewBudgetNotes(items, table, now), Progress: catalog.NewProgress(items, table, now),
		leases: catalog.NewStreamLeases(items, table, schema.LeaseAge, now),
		items:  items, stream: stream, table: table, shards: streamShards{at: at}, now: now,
	}, nil
}

// findStream returns the stream that a table has now.
func findStream(ctx context.Context, items awsdb.Items, table string) (streamPlace, error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	out, err := items.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return streamPlace{}, fmt.Errorf("table %s: %w", table, awsdb.TranslateRead(err))
	}
	t := out.Table
	if t.LatestStreamArn == nil || t.LatestStreamLabel == nil || t.StreamSpecification == nil {
		return streamPlace{}, fmt.Errorf("%w: table %s has no stream: ratelimit stack deploy makes one", limiter.ErrInvalid, table)
	}
	if view := string(t.StreamSpecification.StreamViewType); view != string(types.StreamViewTypeNewAndOldImages) {
		return streamPlace{}, fmt.Errorf("%w: the stream of table %s has the view %s; it must be %s", limiter.ErrInvalid, table, view, types.StreamViewTypeNewAndOldImages)
	}
	return streamPlace{*t.LatestStreamArn, *t.LatestStreamLabel}, nil
}

// Follow implements aggregator.Source.
func (s *Stream) Follow(ctx context.Context) (move func(), err error) {
	at, err := findStream(ctx, s.items, s.table)
	if errors.Is(err, limiter.ErrInvalid) {
		return nil, fmt.Errorf("%w: %w", aggregator.ErrGone, err)
	}
	if err != nil || at == s.shards.place() {
		return nil, err
	}
	return func() { s.shards.move(at) }, nil
}

// Shards implements aggregator.Source.
func (s *Stream) Shards(ctx context.Context) ([]aggregator.Shard, error) {
	at := s.shards.place()
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &at.arn}
	var all []aggregator.Shard
	for {
		ctx, stop := context.WithTimeout(ctx, callTimeout)
		out, err := s.stream.DescribeStream(ctx, in)
		stop()
		if err != nil {
			return nil, translateStream("the stream of table "+s.table, err)
		}
		for i := range out.StreamDescription.Shards {
			sh := &out.StreamDescription.Shards[i]
			if sh.ShardId != nil {
				all = append(all, aggregator.Shard{ID: *sh.ShardId, Parent: text(sh.ParentShardId)})
			}
		}
		in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId
		if in.ExclusiveStartShardId == nil {
			s.shards.listed(all)
			return all, nil
		}
	}
}

// Open implements aggregator.Source.
func (s *Stream) Open(ctx context.Context, shard string, after aggregator.Sequence) (string, error) {
	at := s.shards.place()
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &at.arn, ShardId: &shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if after != "" {
		sequence := string(after)
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &sequence
	}
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	out, err := s.stream.GetShardIterator(ctx, in)
	if err != nil {
		return "", s.missing(ctx, shard, translateStream("shard "+shard+" of the stream", err))
	}
	return text(out.ShardIterator), nil
}

// missing returns the error of a call for a shard. DynamoDB has the same error for a shard that is gone as
// for a stream that is gone: the list of shards distinguishes them.
func (s *Stream) missing(ctx context.Context, shard string, err error) error {
	if !errors.Is(err, aggregator.ErrGone) {
		return err
	}
	shards, listErr := s.Shards(ctx)
	switch {
	case listErr != nil:
		return listErr
	case slices.ContainsFunc(shards, func(sh aggregator.Shard) bool { return sh.ID == shard }):
		return fmt.Errorf("shard %s is in the list of shards, and not in the stream: %w", shard, limiter.ErrUnavailable)
	}
	return fmt.Errorf("shard %s: %w", shard, aggregator.ErrDropped)
}

// Record reads a record. One that cannot be read has a problem, and the key as far as it is there.
func (s *Stream) Record(from *types.Record) aggregator.Record { return readRecord(s.table, from) }

// Read implements aggregator.Source.
func (s *Stream) Read(ctx context.Context, iterator string) (records []aggregator.Record, next string, err error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	out, err := s.stream.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator})
	if err != nil {
		return nil, "", translateStream("records of the stream", err)
	}
	records = make([]aggregator.Record, len(out.Records))
	for i := range out.Records {
		records[i] = s.Record(&out.Records[i])
	}
	return records, text(out.NextShardIterator), nil
}

// translateStream returns an error of package aggregator for one of the SDK.
func translateStream(of string, err error) error {
	if _, trimmed := errors.AsType[*types.TrimmedDataAccessException](err); trimmed {
		return fmt.Errorf("%s: %w: %w", of, aggregator.ErrTrimmed, err)
	}
	if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
		return fmt.Errorf("%s: %w: %w", of, aggregator.ErrExpired, err)
	}
	if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
		return fmt.Errorf("%s: %w: %w", of, aggregator.ErrGone, err)
	}
	if fault, ok := errors.AsType[smithy.APIError](err); ok && fault.ErrorCode() == "ValidationException" {
		return fmt.Errorf("%s: %w: %w", of, aggregator.ErrPosition, err)
	}
	return fmt.Errorf("%s: %w: %w", of, limiter.ErrUnavailable, err)
}
