package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// startTimeout bounds how long the start waits for the store in all: for credentials,
	// for the table, and for each thing that it asks of the table.
	startTimeout = 20 * time.Second
	// startAttempt is how long one try may take.
	startAttempt = 5 * time.Second
	// startPause is between two tries.
	startPause = time.Second
)

// openStore opens the store that the configuration names.
func (s *service) openStore(ctx context.Context) error {
	if s.cfg.Store.Type == config.StoreDynamoDB {
		return s.openDynamoDB(ctx)
	}
	if dir := s.cfg.Store.Embedded.Data; dir != "" {
		return s.openDurable(ctx, dir)
	}
	return s.useEmbedded(embedded.New(s.embeddedConfig()))
}

// openDurable opens the store that is in a directory.
func (s *service) openDurable(ctx context.Context, dir string) error {
	cfg := s.embeddedConfig()
	cfg.NewFile = s.cfg.Store.Embedded.NewData
	store, err := embedded.Open(dir, cfg) //nolint:contextcheck // a store outlives its start
	if errors.Is(err, datafile.ErrMissing) {
		err = fmt.Errorf("%w; serve --new-data does the same, for one start", err)
	}
	if err != nil {
		return fmt.Errorf("store.embedded.data, or --data: %w", err)
	}
	s.durable, s.alerts = store, newAlerts(s.cfg.Budgets.Webhook, s.log)
	s.log.InfoContext(ctx, "using a data directory", "directory", dir, "buckets", store.Recovery().Buckets, "bytes", store.Stats().Bytes)
	s.dataWatch = &dataWatch{present: store.Present, health: &s.health, log: s.log}
	return errors.Join(s.useEmbedded(store), s.registry.Register(newDurableMetrics(store)), s.registry.Register(newBudgetMetrics(s.alerts)), s.dataWatch.register(s.registry))
}

func (s *service) useEmbedded(store *embedded.Store) error {
	s.store = store
	return registerBucketMetrics(s.registry, store)
}

// openDynamoDB opens the store of a fleet.
func (s *service) openDynamoDB(ctx context.Context) error {
	cfg := s.cfg.Store.DynamoDB
	clock := dynamo.NewClock(s.clocks.Store, 0)
	client, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: cfg.Region, Endpoint: cfg.Endpoint, Clock: clock})
	if err != nil {
		return fmt.Errorf("store.dynamodb: %w", err)
	}
	err = s.await(ctx, "credentials", func(ctx context.Context) error {
		if _, err := client.Options().Credentials.Retrieve(ctx); err != nil {
			return fmt.Errorf("%w: AWS has no credentials in the environment, in shared files or for this machine's role: %w", limiter.ErrUnavailable, err)
		}
		return nil
	})
	if err == nil {
		err = s.useTable(ctx, client, clock)
	}
	if err != nil {
		return fmt.Errorf("store.dynamodb: %w", err)
	}
	s.log.InfoContext(ctx, "using a table of DynamoDB", "table", cfg.Table, "region", client.Options().Region, "endpoint", cfg.Endpoint)
	return nil
}

// useTable makes a store of the configured table, which it waits for.
func (s *service) useTable(ctx context.Context, client dynamo.Client, clock *dynamo.Clock) error {
	cfg := s.cfg.Store.DynamoDB
	prepare := dynamo.CheckTable
	if cfg.CreateTable {
		prepare = dynamo.CreateTable
	}
	err := s.await(ctx, "the table", func(ctx context.Context) error { return prepare(ctx, client, cfg.Table) })
	if err == nil {
		err = s.await(ctx, "the versions of the table", func(ctx context.Context) error { return s.offerUpgrade(ctx, client) })
	}
	if err != nil {
		return err
	}
	store, err := dynamo.New(s.tableConfig(client, clock)) //nolint:contextcheck // a store outlives its start
	if err != nil {
		return err
	}
	s.store = store
	s.outages.use(store)
	return errors.Join(s.registry.Register(newTableMetrics(store, clock)), s.outages.register(s.registry))
}

// offerUpgrade says where the table is of an older version than the program.
func (s *service) offerUpgrade(ctx context.Context, client dynamo.Client) error {
	versions, err := dynamo.ComponentVersions(ctx, client, s.cfg.Store.DynamoDB.Table)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.Older() {
			s.log.WarnContext(ctx, "the table is of an older version, and is used as it is: when no older replica runs, run ratelimit upgrade", "part", v.Name, "version", v.Table, "upgrade_to", v.Known)
		}
	}
	return nil
}

// tableConfig configures the store of a fleet.
func (s *service) tableConfig(client dynamo.Client, clock *dynamo.Clock) dynamo.Config {
	return dynamo.Config{
		Client: client, Table: s.cfg.Store.DynamoDB.Table, Now: s.clocks.Store, Clock: clock, Leases: true, Logger: s.log, Observe: s.outages.observe,
		Budget: max(dynamo.DefaultBudget, s.cfg.Decision.Timeout), AuditRetention: s.cfg.Audit.Retention,
	}
}

// await tries what the start needs until it succeeds, fails for a reason that does
// not pass, or startTimeout is over since the first wait. The try may be repeated
// however the one before ended.
func (s *service) await(ctx context.Context, what string, try func(context.Context) error) error {
	if s.startBy.IsZero() {
		s.startBy = time.Now().Add(startTimeout)
	}
	waiting, stop := context.WithDeadline(ctx, s.startBy)
	defer stop()
	for first := true; ; first = false {
		err := attempt(waiting, try)
		if err == nil || !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain) {
			return err
		}
		if first {
			s.log.WarnContext(ctx, "waiting", "for", what, "at_most", startTimeout, "error", err)
		}
		select {
		case <-time.After(startPause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("%w while waiting for %s: %w", context.Cause(ctx), what, err)
			}
			return fmt.Errorf("gave up after %v: %w", startTimeout, err)
		}
	}
}

func attempt(ctx context.Context, try func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, startAttempt)
	defer stop()
	return try(ctx)
}

// openNamespaces has the store open the namespaces that rules name, so that no
// request has to wait for it.
func (s *service) openNamespaces(ctx context.Context, rules *descriptor.Rules) error {
	for _, d := range rules.Domains() {
		if _, err := s.store.Read(ctx, d.Namespace(), nil, nil); err != nil { // one that is open costs nothing
			return err
		}
	}
	return nil
}
