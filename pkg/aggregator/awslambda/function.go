package awslambda

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultMargin is how long before the end of its time a call stops to write.
	DefaultMargin = time.Second
	// relist is how long a list of the shards of the stream is good for.
	relist = time.Hour
)

// Stream is the stream of a table, and the usage in the table; *dynamo.Stream is one.
type Stream interface {
	aggregator.Snapshots
	// Record reads a record. One that cannot be read has a problem.
	Record(*types.Record) aggregator.Record
	// Shards lists the shards that the stream has. Positions of others can be forgotten then.
	Shards(context.Context) ([]aggregator.Shard, error)
}

// Config configures a function. Stream must be set.
type Config struct {
	Stream    Stream
	Windows   []limiter.UsageWindow                     // nil = all
	Retention func(limiter.UsageWindow) time.Duration   // how long a snapshot is kept, 0 = for good; nil = as the window says
	Archive   aggregator.Archive                        // of audit events that expire; nil = none
	Encode    func(*aggregator.Expired) ([]byte, error) // writes an event of the archive as a line; needed with Archive
	Margin    time.Duration                             // how long before the end of its time a call stops to write; 0 = DefaultMargin
	Logger    *slog.Logger                              // nil = none
	Metrics   io.Writer                                 // a line for each call, in CloudWatch's embedded metric format; nil = none
	Table     string                                    // dimension of the metrics
	Now       func() time.Time                          // clock of the metrics; nil = time.Now
}

// Function aggregates the records of its calls. Lambda makes one call at a time.
type Function struct {
	cfg Config

	mu     sync.Mutex
	listed time.Time // when the shards of the stream were listed; zero = never
}

// New returns a function. Its error wraps limiter.ErrInvalid.
func New(cfg Config) (*Function, error) {
	if cfg.Stream == nil {
		return nil, fmt.Errorf("%w: an aggregator needs a stream", limiter.ErrInvalid)
	}
	if cfg.Archive != nil && cfg.Encode == nil {
		return nil, fmt.Errorf("%w: an archive needs a form of its lines", limiter.ErrInvalid)
	}
	if cfg.Windows == nil {
		cfg.Windows = limiter.UsageWindows()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = io.Discard
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Margin = cmp.Or(max(cfg.Margin, 0), DefaultMargin)
	return &Function{cfg: cfg}, nil
}

// Run answers calls of the runtime of Lambda, which AWS_LAMBDA_RUNTIME_API names. It does not
// return: the program ends when the runtime cannot be reached.
func (f *Function) Run(ctx context.Context) {
	lambda.StartWithOptions(f.Handle, lambda.WithContext(ctx))
}

// Handle is one call. Its error says that no record of the event can be told from another, and
// that Lambda should repeat them all.
func (f *Function) Handle(ctx context.Context, e Event) (Response, error) {
	if len(e.Records) == 0 {
		return respond(""), nil // a window ends
	}
	if e.ShardID == "" {
		return Response{}, errNoShard
	}
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline.Add(-f.cfg.Margin))
		defer stop()
	}
	f.relist(ctx)
	c := &call{Function: f, batch: aggregator.NewBatch(e.ShardID, f.cfg.Windows, f.cfg.Retention)}
	if f.cfg.Archive != nil {
		c.lines = aggregator.NewLines(e.ShardID, f.cfg.Encode)
	}
	for _, raw := range e.Records {
		c.take(raw)
	}
	failed := c.flush(ctx)
	c.report()
	return respond(string(failed)), nil
}

// relist lists the shards of the stream from time to time. Without a list no position is forgotten.
func (f *Function) relist(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	if !f.listed.IsZero() && now.Sub(f.listed) < relist {
		return
	}
	f.listed = now
	if _, err := f.cfg.Stream.Shards(ctx); err != nil {
		f.cfg.Logger.WarnContext(ctx, "the shards of the stream cannot be listed", "error", err)
	}
}
