package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

// ValkeyConfig returns the configuration of the table that settings name.
func ValkeyConfig(at *config.Valkey) valkey.Config {
	cfg := valkey.Config{Name: at.Table, Create: at.Create, Recreate: at.OnLoss == config.LossRecreate, NoUsage: !at.Usage, Replica: at.Durability == config.DurableReplica, Connection: valkey.Connection{
		Addresses: at.Addresses, Master: at.Master, Database: at.Database,
		Login:    valkey.Login{User: at.Username, Password: at.Password, PasswordFile: at.PasswordFile},
		Sentinel: valkey.Login{User: at.SentinelUsername, Password: at.SentinelPassword, PasswordFile: at.SentinelPasswordFile},
	}}
	if of := at.TLS; of.Enabled {
		cfg.Connection.TLS = &valkey.TLS{CAFile: of.CA, CertFile: of.Cert, KeyFile: of.Key, ServerName: of.Name}
	}
	return cfg
}

// openValkey opens the store of a fleet on a Valkey or Redis server, which it waits for.
func (b *backend) openValkey(ctx context.Context) error {
	cfg := ValkeyConfig(&b.cfg.Store.Valkey)
	clock := valkey.NewClock(b.Clocks.Store)
	cfg.Now, cfg.Clock, cfg.Leases, cfg.Logger, cfg.Observe = b.Clocks.Store, clock, true, b.log, b.outages.observe
	cfg.Budget, cfg.AuditRetention = max(dynamo.DefaultBudget, b.cfg.Decision.Timeout), b.cfg.Audit.Retention
	var store *valkey.Store
	err := b.starting.Await(ctx, "the server", func(ctx context.Context) (err error) {
		store, err = valkey.Open(ctx, cfg)
		return err
	})
	if err != nil {
		return fmt.Errorf("store.valkey: %w", err)
	}
	b.log.InfoContext(ctx, "using a table of a Valkey or Redis server", "table", cfg.Name, "addresses", strings.Join(cfg.Connection.Addresses, ","), "master", cfg.Connection.Master)
	err = b.follow(config.StoreValkey, onValkey(), store, clock)
	if err == nil && !cfg.NoUsage {
		err = b.watchUsage(store)
	}
	return err
}
