package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/user"
	"time"

	"github.com/spf13/pflag"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

// tableFlags name a table to work on without a service.
type tableFlags struct {
	store    string // dynamodb or valkey; "" = a service, or dynamodb with a table
	at       config.DynamoDB
	onServer *config.Valkey    // of the store valkey; nil = it is another one
	rules    *descriptor.Rules // of the configuration that was read, by which buckets have names; nil = none was
}

func (f *tableFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.store, "store", "", "dynamodb or valkey works on the table itself, without a service (default: ask a service)")
	flags.StringVar(&f.at.Table, "table", "", "table to work on, with --store (default: that of --config)")
	flags.StringVar(&f.at.Region, "region", "", "AWS region of the table")
	flags.StringVar(&f.at.Endpoint, "endpoint", "", "endpoint of DynamoDB, such as a local one")
}

// given reports whether the flags name a table.
func (f *tableFlags) given() bool { return f.store != "" || f.at != (config.DynamoDB{}) }

// check refuses flags that do not fit together, and completes them by a configuration.
func (f *tableFlags) check(c *connection, data, file string) error {
	switch {
	case f.store != "" && f.store != string(config.StoreDynamoDB) && f.store != string(config.StoreValkey):
		return fmt.Errorf("--store is %.100q; it can be dynamodb or valkey, a table that is worked on without a service", f.store)
	case c.server != "" || c.context != "" || data != "":
		return errors.New("--store and --table work without a service: leave out --server, --context and --data")
	case f.store == string(config.StoreValkey):
		return f.checkServer(file)
	case f.at.Table == "" || file != "":
		cfg, err := (&command.Source{File: file}).Load()
		if err != nil {
			return fmt.Errorf("--table is missing, and the configuration names none: %w", err)
		}
		if cfg.Store.Type != config.StoreDynamoDB {
			return fmt.Errorf("store.type is %s: name a table with --table, or a configuration with one", cfg.Store.Type)
		}
		f.rules = cfg.Rules
		from := cfg.Store.DynamoDB
		f.at = config.DynamoDB{Table: cmp.Or(f.at.Table, from.Table), Region: cmp.Or(f.at.Region, from.Region), Endpoint: cmp.Or(f.at.Endpoint, from.Endpoint)}
	}
	return f.at.Check()
}

// checkServer takes the server of the store valkey from a configuration.
func (f *tableFlags) checkServer(file string) error {
	if f.at.Region != "" || f.at.Endpoint != "" {
		return errors.New("--region and --endpoint are for --store dynamodb: leave them out")
	}
	cfg, err := (&command.Source{File: file}).Load()
	if err != nil {
		return fmt.Errorf("--store valkey works on the server of a configuration: %w", err)
	}
	if cfg.Store.Type != config.StoreValkey {
		return fmt.Errorf("store.type is %s: name a configuration with store.type: valkey", cfg.Store.Type)
	}
	f.rules, f.onServer = cfg.Rules, &cfg.Store.Valkey
	f.onServer.Table = cmp.Or(f.at.Table, f.onServer.Table)
	return f.onServer.Check()
}

// openServer opens a table on a Valkey or Redis server, which must be there.
func (f *tableFlags) openServer(ctx context.Context) (limiter.Store, error) {
	cfg := server.ValkeyConfig(f.onServer)
	cfg.Create, cfg.Recreate, cfg.Clock = false, false, valkey.NewClock(nil)
	return valkey.Open(ctx, cfg)
}

// openTable opens a table of DynamoDB.
func (f *tableFlags) openTable(ctx context.Context) (limiter.Store, error) {
	clock := dynamo.NewClock(time.Now, 0)
	db, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: f.at.Region, Endpoint: f.at.Endpoint, Clock: clock})
	if err == nil {
		err = command.Attempt(ctx, func(ctx context.Context) error { return dynamo.CheckTable(ctx, db, f.at.Table) })
	}
	if err != nil {
		return nil, err
	}
	return dynamo.New(db, dynamo.Config{Table: f.at.Table, Now: time.Now, Clock: clock}) //nolint:contextcheck // the end of the command closes it
}

// open opens the table, and answers requests of the API on it. It takes no lease.
func (f *tableFlags) open(ctx context.Context) (*tableService, error) {
	open, kind := f.openTable, config.StoreDynamoDB
	if f.onServer != nil {
		open, kind = f.openServer, config.StoreValkey
	}
	store, err := open(ctx)
	switch {
	case errors.Is(err, limiter.ErrUnavailable):
		return nil, command.Unanswered(err)
	case err != nil:
		return nil, command.Failed(err)
	}
	command.AtEnd(ctx, func(ctx context.Context) { _ = store.Close(ctx) }) // nothing is under way
	cfg := server.ControlConfig(store, string(kind), time.Now)
	cfg.Sources.Variants = f.rules.Variants
	operations, err := controlapi.New(cfg) //nolint:contextcheck // requests have contexts of their own
	if err != nil {
		return nil, command.Failed(err)
	}
	s := new(tableService)
	for _, route := range operations.Routes() { //nolint:contextcheck // the same
		s.mux.Handle(route.Pattern, route.Handler)
	}
	return s, nil
}

// tableService answers requests of the API in this process. It is an api.Doer.
type tableService struct{ mux admin.Mux }

// Do implements api.Doer.
func (s *tableService) Do(req *http.Request) (*http.Response, error) {
	name := "table"
	if u, err := user.Current(); err == nil {
		name += ":" + u.Username
	}
	ctx := admin.WithPrincipal(req.Context(), admin.Principal{Name: name, Role: admin.RoleAdminister})
	w := &kept{header: make(http.Header), code: http.StatusOK}
	s.mux.ServeHTTP(w, req.WithContext(ctx))
	return &http.Response{
		StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, Request: req,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()),
	}, nil
}

// kept keeps an answer.
type kept struct {
	header http.Header
	body   bytes.Buffer
	code   int
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// Write implements http.ResponseWriter.
func (k *kept) Write(text []byte) (int, error) { return k.body.Write(text) }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(code int) { k.code = code }
