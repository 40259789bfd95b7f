package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server/fleet"
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
	Clocks    *limiter.Clocks
	Registry  *prometheus.Registry
	outages   *outages         // of the store, if it is a table
	events    *fleet.Events    // of the service
	clock     *dynamo.Clock    // of the store, if it is a table; else nil
	ready     *admin.Health    // of the service
	starting  command.Starting // waits for the store
	Store     limiter.Store
	durable   *embedded.Store // the store, if it keeps a file; else nil
	dataWatch *dataWatch      // nil without a file
	usage     usageWatcher    // the store, if it compares usage with budgets; else nil
	alerts    *Alerts         // of these budgets; nil without them
}

// usageWatcher is a store that compares the usage in it with budgets.
type usageWatcher interface {
	WatchBudgets(ctx context.Context, pause time.Duration, budgets func() *limiter.BudgetSet, report func(limiter.BudgetEvent))
}

// watchUsage has a store compare its usage with budgets, and reports on that.
func (b *backend) watchUsage(store usageWatcher) error {
	b.usage, b.alerts = store, OpenAlerts(b.cfg.Budgets.Webhook, b.log)
	return b.Registry.Register(NewBudgetMetrics(b.alerts))
}

// openStore opens the store that the configuration names.
func (b *backend) openStore(ctx context.Context) error {
	switch b.cfg.Store.Type {
	case config.StoreDynamoDB:
		return b.openDynamoDB(ctx)
	case config.StoreValkey:
		return b.openValkey(ctx)
	case config.StoreEmbedded:
	}
	if dir := b.cfg.Store.Embedded.Data; dir != "" {
		return b.openDurable(ctx, dir)
	}
	return b.useEmbedded(embedded.New(b.EmbeddedConfig()))
}

// openDurable opens the store that is in a directory.
func (b *backend) openDurable(ctx context.Context, dir string) error {
	cfg := b.EmbeddedConfig()
	cfg.NewFile = b.cfg.Store.Embedded.NewData
	store, err := embedded.Open(dir, cfg) //nolint:contextcheck // a store outlives its start
	if errors.Is(err, datafile.ErrMissing) {
		err = fmt.Errorf("%w; serve --new-data does the same, for one start", err)
	}
	if err != nil {
		return fmt.Errorf("store.embedded.data, or --data: %w", err)
	}
	b.durable = store
	b.log.InfoContext(ctx, "using a data directory", "directory", dir, "buckets", store.Recovery().Buckets, "bytes", store.Stats().Bytes)
	b.dataWatch = &dataWatch{present: store.Present, health: b.ready, log: b.log}
	return errors.Join(b.useEmbedded(store), b.Registry.Register(newDurableMetrics(store)), b.watchUsage(store), b.dataWatch.register(b.Registry))
}

func (b *backend) useEmbedded(store *embedded.Store) error {
	b.Store = store
	return b.Registry.Register(newBucketMetrics(store))
}

// openDynamoDB opens the store of a fleet.
func (b *backend) openDynamoDB(ctx context.Context) error {
	cfg := b.cfg.Store.DynamoDB
	clock := dynamo.NewClock(b.Clocks.Store, 0).WithMaxOffset(cfg.MaxClockOffset)
	client, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: cfg.Region, Endpoint: cfg.Endpoint, Clock: clock})
	if err != nil {
		return fmt.Errorf("store.dynamodb: %w", err)
	}
	err = b.starting.Await(ctx, "credentials", func(ctx context.Context) error {
		if _, err := client.Options().Credentials.Retrieve(ctx); err != nil {
			return fmt.Errorf("%w: AWS has no credentials in the environment, in shared files or for this machine's role: %w", limiter.ErrUnavailable, err)
		}
		return nil
	})
	if err == nil {
		err = b.UseTable(ctx, client, clock)
	}
	if err != nil {
		return fmt.Errorf("store.dynamodb: %w", err)
	}
	b.log.InfoContext(ctx, "using a table of DynamoDB", "table", cfg.Table, "region", client.Options().Region, "endpoint", cfg.Endpoint)
	return nil
}

// UseTable makes a store of the configured table, which it waits for.
func (b *backend) UseTable(ctx context.Context, client dynamo.Client, clock *dynamo.Clock) error {
	cfg := b.cfg.Store.DynamoDB
	prepare := dynamo.CheckTable
	if cfg.CreateTable {
		prepare = dynamo.CreateTable
	}
	err := b.starting.Await(ctx, "the table", func(ctx context.Context) error { return prepare(ctx, client, cfg.Table) })
	if err != nil {
		return err
	}
	store, err := dynamo.New(client, b.tableConfig(clock)) //nolint:contextcheck // a store outlives its start
	if err != nil {
		return err
	}
	return b.follow(config.StoreDynamoDB, onDynamoDB(), store, clock)
}

// follow makes a store of a table that of the service, and reports on it.
func (b *backend) follow(kind config.StoreType, of tableServer, store tableStore, clock *dynamo.Clock) error {
	b.Store, b.clock = store, clock
	b.outages.use(kind, store)
	look := func() tableState { return tableState{store.Stats(), clock.State()} }
	return errors.Join(b.Registry.Register(newTableMetrics(of, look)), b.outages.register(b.Registry))
}

// tableConfig configures the store of a fleet.
func (b *backend) tableConfig(clock *dynamo.Clock) dynamo.Config {
	return dynamo.Config{
		Table: b.cfg.Store.DynamoDB.Table, Now: b.Clocks.Store, Clock: clock, Leases: true, Logger: b.log, Observe: b.outages.observe,
		Budget: max(dynamo.DefaultBudget, b.cfg.Decision.Timeout), AuditRetention: b.cfg.Audit.Retention,
	}
}

// openNamespaces has the store open the namespaces that rules name, so that no
// request has to wait for it.
func (b *backend) openNamespaces(ctx context.Context, rules *descriptor.Rules) error {
	for _, d := range rules.Domains() {
		if _, err := b.Store.Read(ctx, d.Namespace(), nil, nil); err != nil { // one that is open costs nothing
			return fmt.Errorf("opening namespace %.100q: %w", d.Namespace(), err)
		}
	}
	return nil
}

// EmbeddedConfig is that of the embedded store, or of the memory that decides while the
// store of a fleet does not answer.
func (b *backend) EmbeddedConfig() embedded.Config {
	memory := memoryLimit()
	cfg := embedded.Config{MaxBuckets: int64(b.cfg.Store.Embedded.MaxBuckets), MaxMarks: marksIn(memory), Now: b.Clocks.Call, Logger: b.log, AuditRetention: b.cfg.Audit.Retention}
	if cfg.MaxBuckets == 0 {
		cfg.MaxBuckets = bucketsIn(memory)
	}
	return cfg
}

// fallbackConfig is that of the memory which decides while the store does not answer.
func (b *backend) fallbackConfig() embedded.Config {
	cfg := b.EmbeddedConfig()
	if b.cfg.Store.Type == config.StoreEmbedded && b.cfg.Store.Embedded.MaxBuckets == 0 {
		cfg.MaxBuckets = max(cfg.MaxBuckets/spareShare, leastBuckets)
	}
	return cfg
}
