package awscmd

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// relist is how long a list of the shards of the stream is good for.
const relist = time.Hour

// mostTell bounds the write of a report.
const mostTell = time.Second

// Function aggregates the records of its calls. Lambda makes one call at a time.
type Function struct {
	cfg FunctionConfig

	mu     sync.Mutex
	listed time.Time // when the shards of the stream were listed; zero = never
	told   time.Time // when the last report was written; zero = never
}

// NewFunction returns a function. Its error wraps limiter.ErrInvalid.
func NewFunction(cfg FunctionConfig) (*Function, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Function{cfg: cfg}, nil
}

// Run answers calls of the runtime of Lambda, which AWS_LAMBDA_RUNTIME_API names. It does not
// return: the program ends when the runtime cannot be reached.
func (f *Function) Run(ctx context.Context) {
	lambda.StartWithOptions(f.Handle, lambda.WithContext(ctx))
}

// Handle is one call. It returns an error if the records of the event cannot be distinguished:
// then Lambda should repeat them all.
func (f *Function) Handle(ctx context.Context, e LambdaEvent) (LambdaResponse, error) {
	if len(e.Records) == 0 {
		return respond(""), nil // a window ends
	}
	if e.ShardID == "" {
		return LambdaResponse{}, errNoShard
	}
	if err := checkSource(e.Records[0], f.cfg.Table); err != nil {
		return LambdaResponse{}, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline.Add(-f.cfg.Margin))
		defer stop()
	}
	f.relist(ctx)
	c := &lambdaCall{cfg: &f.cfg, to: f.begin(ctx), batch: aggregator.NewBatch(e.ShardID, f.cfg.Windows, f.cfg.Retention)}
	if f.cfg.Archive != nil {
		c.lines = aggregator.NewLines(e.ShardID, f.cfg.Encode)
	}
	for _, raw := range e.Records {
		c.take(raw)
	}
	writing, written := f.writing(ctx)
	failed := c.flush(writing)
	written()
	c.counts.ToldEvents = f.end(ctx)
	c.report()
	if failed == "" {
		f.tell(ctx, c.newest)
	}
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

// tell reports that records up to a time are counted, at most once in aggregator.ReportEvery. Nothing waits for a report
// that fails: a later call has another.
func (f *Function) tell(ctx context.Context, upTo time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	if f.cfg.Reports == nil || upTo.IsZero() || !f.told.IsZero() && now.Sub(f.told) < aggregator.ReportEvery {
		return
	}
	f.told = now
	ctx, stop := context.WithTimeout(ctx, mostTell)
	defer stop()
	p := &aggregator.Progress{ID: f.cfg.ReportID, Function: true, Shards: 1, Behind: max(now.Sub(upTo), 0).Truncate(time.Millisecond)}
	if err := f.cfg.Reports.Report(ctx, p); err != nil {
		f.cfg.Logger.WarnContext(ctx, "the report of this aggregator could not be written: status and console do not show it", "error", err)
	}
}

// begin returns the snapshots that a call writes to.
func (f *Function) begin(ctx context.Context) aggregator.Snapshots {
	if f.cfg.Budgets == nil {
		return f.cfg.Stream
	}
	ctx, stop := context.WithTimeout(ctx, partOfTime(ctx, mostBegin))
	defer stop()
	return f.cfg.Budgets.Begin(ctx)
}

// end sends the events of a call.
func (f *Function) end(ctx context.Context) *ToldEvents {
	if f.cfg.Budgets == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, mostEnd)
	defer stop()
	told := f.cfg.Budgets.End(ctx)
	return &told
}

// writing returns a context for the writes of a call, which leaves time to send its events.
func (f *Function) writing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if f.cfg.Budgets == nil || !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-partOfTime(ctx, mostEnd)))
}
