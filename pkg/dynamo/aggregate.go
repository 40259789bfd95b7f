package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/changestream"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
)

// The change stream of a table, whose code is in internal/changestream.
type (
	// Stream is the stream of a table, and the usage snapshots and leases in the table. It is
	// an aggregator.Source, aggregator.Snapshots and aggregator.Leases.
	Stream = changestream.Stream
	// StreamsClient is the part of DynamoDB Streams that is needed; *dynamodbstreams.Client
	// is one.
	StreamsClient = changestream.Client
)

// NewStreamsClient returns a client of the streams of tables, which retries. It makes no call.
// Errors wrap limiter.ErrInvalid.
func NewStreamsClient(ctx context.Context, cfg ClientConfig) (*dynamodbstreams.Client, error) {
	return awsdb.NewStreamsClient(ctx, cfg)
}

// OpenStream finds the stream of a table. Errors wrap limiter.ErrInvalid where the table has none,
// or one without both images, and limiter.ErrUnavailable where another try may help. now is the
// clock by which leases that are not needed any more expire; nil = time.Now.
func OpenStream(ctx context.Context, client Client, streams StreamsClient, table string, now func() time.Time) (*Stream, error) {
	return changestream.Open(ctx, client, streams, table, now)
}
