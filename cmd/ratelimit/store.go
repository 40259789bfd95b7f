package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/alert"
	"github.com/ratelimit/ratelimit/internal/clocks"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// backend is the store of a service, and the parts that opening it needs.
type backend struct {
	cfg       *config.Config // it was started with this
	log       *slog.Logger
	clocks    *clocks.Clocks
	registry  *prometheus.Registry
	outages   *outages      // of the store, if it is a table
	ready     *admin.Health // of the service
	starting  starting      // waits for the store
	store     limiter.Store
	durable   *embedded.Store // the store, if it keeps a file; else nil
	dataWatch *dataWatch      // nil without a file
	alerts    *alert.Alerts   // of budgets; nil without a file
}

// openStore opens the store that the configuration names.
func (b *backend) openStore(ctx context.Context) error {
	if b.cfg.Store.Type == config.StoreDynamoDB {
		return b.openDynamoDB(ctx)
	}
	if dir := b.cfg.Store.Embedded.Data; dir != "" {
		return b.openDurable(ctx, dir)
	}
	return b.useEmbedded(embedded.New(b.embeddedConfig()))
}

// openDurable opens the store that is in a directory.
func (b *backend) openDurable(ctx context.Context, dir string) error {
	cfg := b.embeddedConfig()
	cfg.NewFile = b.cfg.Store.Embedded.NewData
	store, err := embedded.Open(dir, cfg) //nolint:contextcheck // a store outlives its start
	if errors.Is(err, datafile.ErrMissing) {
		err = fmt.Errorf("%w; serve --new-data does the same, for one start", err)
	}
	if err != nil {
		return fmt.Errorf("store.embedded.data, or --data: %w", err)
	}
	b.durable, b.alerts = store, newAlerts(b.cfg.Budgets.Webhook, b.log)
	b.log.InfoContext(ctx, "using a data directory", "directory", dir, "buckets", store.Recovery().Buckets, "bytes", store.Stats().Bytes)
	b.dataWatch = &dataWatch{present: store.Present, health: b.ready, log: b.log}
	return errors.Join(b.useEmbedded(store), b.registry.Register(newDurableMetrics(store)), b.registry.Register(newBudgetMetrics(b.alerts)), b.dataWatch.register(b.registry))
}

func (b *backend) useEmbedded(store *embedded.Store) error {
	b.store = store
	return registerBucketMetrics(b.registry, store)
}

// openDynamoDB opens the store of a fleet.
func (b *backend) openDynamoDB(ctx context.Context) error {
	cfg := b.cfg.Store.DynamoDB
	clock := dynamo.NewClock(b.clocks.Store, 0).WithMaxOffset(cfg.MaxClockOffset)
	client, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: cfg.Region, Endpoint: cfg.Endpoint, Clock: clock})
	if err != nil {
		return fmt.Errorf("store.dynamodb: %w", err)
	}
	err = b.starting.await(ctx, "credentials", func(ctx context.Context) error {
		if _, err := client.Options().Credentials.Retrieve(ctx); err != nil {
			return fmt.Errorf("%w: AWS has no credentials in the environment, in shared files or for this machine's role: %w", limiter.ErrUnavailable, err)
		}
		return nil
	})
	if err == nil {
		err = b.useTable(ctx, client, clock)
	}
	if err != nil {
		return fmt.Errorf("store.dynamodb: %w", err)
	}
	b.log.InfoContext(ctx, "using a table of DynamoDB", "table", cfg.Table, "region", client.Options().Region, "endpoint", cfg.Endpoint)
	return nil
}

// useTable makes a store of the configured table, which it waits for.
func (b *backend) useTable(ctx context.Context, client dynamo.Client, clock *dynamo.Clock) error {
	cfg := b.cfg.Store.DynamoDB
	prepare := dynamo.CheckTable
	if cfg.CreateTable {
		prepare = dynamo.CreateTable
	}
	err := b.starting.await(ctx, "the table", func(ctx context.Context) error { return prepare(ctx, client, cfg.Table) })
	if err != nil {
		return err
	}
	store, err := dynamo.New(b.tableConfig(client, clock)) //nolint:contextcheck // a store outlives its start
	if err != nil {
		return err
	}
	b.store = store
	b.outages.use(store)
	look := func() tableState { return tableState{store.Stats(), clock.State()} }
	return errors.Join(b.registry.Register(newTableMetrics(look)), b.outages.register(b.registry))
}

// tableConfig configures the store of a fleet.
func (b *backend) tableConfig(client dynamo.Client, clock *dynamo.Clock) dynamo.Config {
	return dynamo.Config{
		Client: client, Table: b.cfg.Store.DynamoDB.Table, Now: b.clocks.Store, Clock: clock, Leases: true, Logger: b.log, Observe: b.outages.observe,
		Budget: max(dynamo.DefaultBudget, b.cfg.Decision.Timeout), AuditRetention: b.cfg.Audit.Retention,
	}
}

// openNamespaces has the store open the namespaces that rules name, so that no
// request has to wait for it.
func (b *backend) openNamespaces(ctx context.Context, rules *descriptor.Rules) error {
	for _, d := range rules.Domains() {
		if _, err := b.store.Read(ctx, d.Namespace(), nil, nil); err != nil { // one that is open costs nothing
			return fmt.Errorf("opening namespace %.100q: %w", d.Namespace(), err)
		}
	}
	return nil
}
