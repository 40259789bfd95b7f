package awscmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

type aggregateFlags struct {
	command.Source

	address string
	windows []string
	keep    map[string]string
	flush   time.Duration
	archive string
	lambda  bool
	table   string                 // of lambda
	changed func(flag string) bool // reports whether a flag was given
}

// NewAggregate returns the command aggregate.
func NewAggregate() *cobra.Command {
	var f aggregateFlags
	cmd := &cobra.Command{
		Use:   "aggregate",
		Short: "Write the usage of a fleet into its table, and audit events to S3",
		Long: `aggregate reads the change stream of the DynamoDB table that the configuration names, and
writes usage by hour, day and month into the table, which list usage and get usage show. Run
one process or more: each shard of the stream is read by one of them, and another one goes
on when it ends. Each record counts once. A stream keeps records for 24 hours. With
--archive, audit events that expire go to S3 as lines of JSON.

A Valkey or Redis server counts usage by itself. With store.type: valkey the command needs
--archive, and writes each audit event to S3 within half an hour. The event stays in the
table for audit.retention. A stop of less than that loses no event.

It serves /metrics, /healthz and /readyz on the address of --http-address, or of server.http.`,
		Example: `  ratelimit aggregate --config ratelimit.yaml
  ratelimit aggregate --http-address 0.0.0.0:8080 --windows hour,day --keep hour=720h
  ratelimit aggregate --config ratelimit.yaml --archive s3://audit-events/audit`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.changed = cmd.Flags().Changed
			return f.start(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.Flags(cmd)
	cmd.Flags().StringVar(&f.address, "http-address", "", "host:port of /metrics, /healthz and /readyz (default: server.http.address)")
	cmd.Flags().StringSliceVar(&f.windows, "windows", []string{"hour", "day", "month"}, "windows of usage to write")
	cmd.Flags().StringToStringVar(&f.keep, "keep", nil, "how long to keep a window after its end, such as hour=720h; 24h or more, 0 = for good (default hour=336h,day=9600h,month=0)")
	cmd.Flags().DurationVar(&f.flush, "flush", aggregator.DefaultFlushAfter, "how long records wait for others, to be written together; 100ms to 1m")
	cmd.Flags().StringVar(&f.archive, "archive", "", "where audit events go, such as s3://bucket/audit (default: nowhere)")
	cmd.Flags().BoolVar(&f.lambda, "lambda", false, "answer calls of the runtime of AWS Lambda, which starts the program so by itself")
	cmd.Flags().StringVar(&f.table, "table", "", "table of --lambda")
	return cmd
}

// start checks the flags and aggregates.
func (f *aggregateFlags) start(ctx context.Context, stdout, stderr io.Writer) error {
	windows, keep, err := f.kept()
	if err != nil {
		return command.Misused(err)
	}
	if f.lambda {
		if err := f.checkLambda(); err != nil {
			return command.Misused(err)
		}
		return f.runLambda(ctx, windows, keep, stdout, stderr)
	}
	if f.table != "" {
		return command.Misused(errors.New("--table is of --lambda; else the configuration names the table"))
	}
	cfg, err := f.Load()
	if err != nil {
		return err
	}
	if f.flush < 100*time.Millisecond || f.flush > time.Minute {
		return command.Misused(fmt.Errorf("--flush is %v; it must be 100ms to 1m", f.flush))
	}
	if err := f.checkStore(cfg.Store.Type); err != nil {
		return command.Misused(err)
	}
	return f.run(ctx, cfg, windows, keep, stderr)
}

// checkStore refuses a store that has nothing to aggregate, and flags that are not for it.
func (f *aggregateFlags) checkStore(of config.StoreType) error {
	switch {
	case of == config.StoreDynamoDB:
		return nil
	case of != config.StoreValkey:
		return fmt.Errorf("store.type is %s: aggregate needs dynamodb, or valkey with --archive; an embedded store counts usage by itself", of)
	case f.archive == "":
		return errors.New("store.type is valkey, whose server counts usage by itself: name an archive of audit events with --archive s3://bucket/audit, or run no aggregate")
	}
	for _, flag := range []string{"windows", "keep", "flush"} {
		if f.changed(flag) {
			return fmt.Errorf("--%s is of usage, which the server of store.type: valkey counts by itself: leave it out", flag)
		}
	}
	return nil
}

// kept returns the windows of the flags, and how long each is kept.
func (f *aggregateFlags) kept() (windows []limiter.UsageWindow, keep map[limiter.UsageWindow]time.Duration, err error) {
	for _, text := range f.windows {
		w, err := limiter.ParseUsageWindow(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--windows: %q is none of hour, day and month", text)
		}
		if !slices.Contains(windows, w) {
			windows = append(windows, w)
		}
	}
	if len(windows) == 0 {
		return nil, nil, errors.New("--windows is empty; it must have some of hour, day and month")
	}
	keep = make(map[limiter.UsageWindow]time.Duration)
	for _, w := range windows {
		keep[w] = w.Retention()
	}
	for text, age := range f.keep {
		w, err := limiter.ParseUsageWindow(text)
		if err != nil || !slices.Contains(windows, w) {
			return nil, nil, fmt.Errorf("--keep: %q is none of --windows", text)
		}
		if keep[w], err = time.ParseDuration(age); err != nil || aggregator.CheckRetention(w, keep[w]) != nil {
			return nil, nil, fmt.Errorf("--keep: %s=%.50q must be 0, for good, or a duration of 24h or more, such as 720h: it counts from the end of the %v, and records come up to a day late", text, age, w)
		}
	}
	return windows, keep, nil
}

// run aggregates until the context is done.
func (f *aggregateFlags) run(ctx context.Context, cfg *config.Config, windows []limiter.UsageWindow, keep map[limiter.UsageWindow]time.Duration, stderr io.Writer) error {
	log := command.NewLogger(stderr, cfg.Log)
	archive, err := f.openArchive(ctx, log)
	if err != nil {
		return err
	}
	open := f.onDynamoDB
	if cfg.Store.Type == config.StoreValkey {
		open = f.onValkey
	}
	a, err := open(ctx, cfg, log)
	if err != nil {
		return command.Failed(fmt.Errorf("store.%s: %w", cfg.Store.Type, err))
	}
	defer a.end()
	host, _ := os.Hostname() // "" is fine: the rest is unique
	a.Windows, a.FlushAfter, a.Retention = windows, f.flush, func(w limiter.UsageWindow) time.Duration { return keep[w] }
	a.Owner, a.ReportID, a.Logger = host+"/"+rand.Text()[:8], newReportID(), log
	a.Archive, a.Encode = archive, command.EncodeAuditLine
	p, err := aggregator.New(a.Config)
	if err != nil {
		return command.Failed(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(f.address, cfg.Server.HTTP.Address))
	if err != nil {
		return command.Failed(fmt.Errorf("--http-address: %w", err))
	}
	log.InfoContext(ctx, "aggregating", "table", a.table, "windows", strings.Join(a.windows, ","), "archive", f.archive, "http", listener.Addr().String())
	return command.Failed(serveBeside(ctx, p, a.alerts, listener, log))
}

// aggregation is the work of a process for one store.
type aggregation struct {
	aggregator.Config

	table   string
	windows []string // of usage, for the log
	alerts  *server.Alerts
	end     func()
}

// onDynamoDB reads the stream of a table.
func (f *aggregateFlags) onDynamoDB(ctx context.Context, cfg *config.Config, log *slog.Logger) (*aggregation, error) {
	stream, err := openStream(ctx, cfg.Store.DynamoDB)
	if err != nil {
		return nil, err
	}
	alerts := server.OpenAlerts(cfg.Budgets.Webhook, log)
	snapshots := aggregator.NewThresholds(stream, func() *limiter.BudgetSet { return cfg.Budgets.Set }, alerts.Tell)
	snapshots.Logger = log
	return &aggregation{
		Config: aggregator.Config{Source: stream, Snapshots: snapshots, Splits: stream, Leases: stream, Reports: stream},
		table:  cfg.Store.DynamoDB.Table, windows: f.windows, alerts: alerts, end: func() {},
	}, nil
}

// onValkey reads the audit events of a table. Replicas have the rest.
func (f *aggregateFlags) onValkey(ctx context.Context, cfg *config.Config, log *slog.Logger) (*aggregation, error) {
	of := server.ValkeyConfig(&cfg.Store.Valkey)
	of.Clock, of.AuditRetention = valkey.NewClock(nil), cfg.Audit.Retention
	var stream *valkey.AuditStream
	err := (&command.Starting{Log: log}).Await(ctx, "the server", func(ctx context.Context) (err error) {
		stream, err = valkey.OpenAuditStream(ctx, of)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &aggregation{
		Config: aggregator.Config{Source: stream, Leases: stream, Reports: stream},
		table:  of.Name, alerts: server.OpenAlerts(config.Webhook{}, log), end: stream.Close,
	}, nil
}

// newReportID returns the id of a new process in the reports of aggregators.
func newReportID() string { return strings.ToLower(rand.Text()[:12]) }

// openStream finds the stream of the table of a configuration.
func openStream(ctx context.Context, at config.DynamoDB) (*dynamo.Stream, error) {
	ctx, stop := context.WithTimeout(ctx, command.StartTimeout)
	defer stop()
	cfg := dynamo.ClientConfig{Region: at.Region, Endpoint: at.Endpoint}
	client, err := dynamo.NewClient(ctx, cfg)
	if err != nil {
		return nil, err
	}
	streams, err := dynamo.NewStreamsClient(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := dynamo.CheckTable(ctx, client, at.Table); err != nil {
		return nil, err
	}
	return dynamo.OpenStream(ctx, client, streams, at.Table, nil)
}

// serveBeside runs a poller, and serves its metrics and its health until it ends.
func serveBeside(ctx context.Context, p *aggregator.Poller, alerts *server.Alerts, listener net.Listener, log *slog.Logger) error {
	registry := prometheus.NewRegistry()
	for _, c := range append(server.ProgramMetrics(), NewAggregateMetrics(p.Stats), server.NewBudgetMetrics(alerts)) {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", answerHealth(p.Alive))
	mux.HandleFunc("GET /readyz", answerHealth(func() error {
		if p.Stats().Missing {
			return errors.New("the table has no stream: switch it on with both images")
		}
		return p.Ready()
	}))
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		defer func() { _ = server.Close() }() // nothing that it serves is worth a wait
		return alerts.Run(ctx, p.Run)
	})
	return g.Wait()
}

// answerHealth answers 200, or 503 with the error of a check.
func answerHealth(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, fmt.Sprintf("%.500s", err.Error()), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	}
}
