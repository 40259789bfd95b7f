package awscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// runtimeVariable is set where the runtime of AWS Lambda starts a program.
const runtimeVariable = "AWS_LAMBDA_RUNTIME_API"

// Arguments returns the arguments of the program. The runtime of Lambda gives none: then they
// are those of the aggregator, with a flag for each variable of the function.
func Arguments(args []string, variable func(string) string) []string {
	if len(args) > 0 || variable(runtimeVariable) == "" {
		return args
	}
	args = []string{"aggregate", "--lambda"}
	for _, of := range []struct{ variable, flag string }{
		{"RATELIMIT_TABLE", "--table"},
		{"RATELIMIT_WINDOWS", "--windows"},
		{"RATELIMIT_KEEP", "--keep"},
		{"RATELIMIT_ARCHIVE", "--archive"},
		{"RATELIMIT_CONFIG", "--config"},
	} {
		if value := variable(of.variable); value != "" {
			args = append(args, of.flag+"="+value)
		}
	}
	return args
}

// checkLambda refuses flags that do not fit together.
func (f *aggregateFlags) checkLambda() error {
	switch {
	case f.Demo || len(f.Rules) > 0 || f.address != "":
		return errors.New("--lambda reads no rules and serves no address: it has --table, --windows, --keep, --archive, and --config for budgets")
	case os.Getenv(runtimeVariable) == "":
		return fmt.Errorf("--lambda answers calls of AWS Lambda, and %s names no runtime", runtimeVariable)
	case f.table == "":
		return errors.New("--lambda needs --table, or RATELIMIT_TABLE in the function's environment")
	}
	return (&config.DynamoDB{Table: f.table}).Check()
}

// runLambda answers calls of the runtime of Lambda. It returns only when it cannot start.
func (f *aggregateFlags) runLambda(ctx context.Context, windows []limiter.UsageWindow, keep map[limiter.UsageWindow]time.Duration, stdout, stderr io.Writer) error {
	log := command.NewLogger(stderr, config.Log{Format: config.LogJSON})
	archive, err := f.openArchive(ctx, log)
	if err != nil {
		return err
	}
	stream, err := openStream(ctx, config.DynamoDB{Table: f.table})
	if err != nil {
		return command.Failed(fmt.Errorf("table %s: %w", f.table, err))
	}
	budgets, err := f.openBudgets(ctx, stream, log)
	if err != nil {
		return err
	}
	function, err := NewFunction(FunctionConfig{
		Stream: stream, Windows: windows, Retention: func(w limiter.UsageWindow) time.Duration { return keep[w] },
		Splits: stream, Archive: archive, Encode: command.EncodeAuditLine, Budgets: budgets, Reports: stream, ReportID: newReportID(), Logger: log, Metrics: stdout, Table: f.table,
	})
	if err != nil {
		return command.Failed(err)
	}
	function.Run(ctx)
	return nil
}

// openBudgets reads the configuration of --lambda for the sake of its budgets; nil = there is none.
func (f *aggregateFlags) openBudgets(ctx context.Context, stream *dynamo.Stream, log *slog.Logger) (FunctionBudgets, error) {
	if f.File == "" {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, command.StartTimeout)
	defer stop()
	source, err := OpenBudgetSource(ctx, f.File)
	if err != nil {
		return nil, command.Misused(fmt.Errorf("--config: %w", err))
	}
	watch, err := OpenBudgetWatch(ctx, BudgetWatchConfig{Source: source, Standings: stream, Logger: log})
	if err != nil {
		return nil, command.Failed(fmt.Errorf("--config: %w", err))
	}
	return watch, nil
}
