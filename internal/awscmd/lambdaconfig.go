package awscmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// defaultFunctionMargin is how long before the end of its time a call stops to write.
const defaultFunctionMargin = time.Second

// FunctionStream is the stream of a table, and the usage in the table; *dynamo.Stream is one.
type FunctionStream interface {
	aggregator.Snapshots
	// Record reads a record. One that cannot be read has a problem.
	Record(*types.Record) aggregator.Record
	// Shards lists the shards that the stream has. Positions of others can be forgotten then.
	Shards(context.Context) ([]aggregator.Shard, error)
}

// FunctionConfig configures a function. Stream must be set.
type FunctionConfig struct {
	Stream    FunctionStream
	Windows   []limiter.UsageWindow                     // nil = all
	Retention func(limiter.UsageWindow) time.Duration   // how long a snapshot is kept after its window, aggregator.MinRetention or more, 0 = for good; nil = as the window says
	Splits    aggregator.Splits                         // finishes splits of buckets; nil = their replicas alone do
	Archive   aggregator.Archive                        // of audit events that expire; nil = none
	Encode    func(*aggregator.Expired) ([]byte, error) // writes an event of the archive as a line; needed with Archive
	Budgets   FunctionBudgets                           // are compared with usage; nil = none
	Reports   aggregator.Reports                        // are told how far the function is, by each of its instances; nil = none
	ReportID  string                                    // of this instance in Reports: another one never has it; needed with Reports
	Margin    time.Duration                             // how long before the end of its time a call stops to write; 0 = defaultFunctionMargin
	Logger    *slog.Logger                              // nil = none
	Metrics   io.Writer                                 // a line for each call, in CloudWatch's embedded metric format; nil = none
	Table     string                                    // whose records are taken, and dimension of the metrics; "" = those of any
	Now       func() time.Time                          // clock of the metrics and the reports; nil = time.Now
}

// complete fills in the defaults.
func (cfg *FunctionConfig) complete() error {
	if cfg.Stream == nil {
		return fmt.Errorf("%w: an aggregator needs a stream", limiter.ErrInvalid)
	}
	if cfg.Archive != nil && cfg.Encode == nil {
		return fmt.Errorf("%w: an archive needs a form of its lines", limiter.ErrInvalid)
	}
	if cfg.Reports != nil {
		if err := (&aggregator.Progress{ID: cfg.ReportID}).Check(); err != nil {
			return err
		}
	}
	if cfg.Windows == nil {
		cfg.Windows = limiter.UsageWindows()
	}
	if err := aggregator.CheckRetentions(cfg.Windows, cfg.Retention); err != nil {
		return err
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Metrics == nil {
		cfg.Metrics = io.Discard
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Margin = cmp.Or(max(cfg.Margin, 0), defaultFunctionMargin)
	return nil
}
