package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/environment"
)

type serveFlags struct {
	command.Source
	grpcAddress string
	mirror      string
	httpAddress string
	admin       string
	store       string
	data        string
	newData     bool
	dynamodb    config.DynamoDB // its names only; "" = the file's
	hangups     <-chan os.Signal
	variables   *environment.Settings // of envoyproxy/ratelimit; nil = none
	traffic     bool                  // of the demo
	keys        listenKeys            // the zero value = its own
}

// NewCommand returns the command serve.
func NewCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the service",
		Long: `serve answers Envoy's Rate Limit Service protocol over gRPC, and JSON, metrics and
health over HTTP. It reads its configuration again whenever the files change, and on
SIGHUP at once; a configuration that is wrong, or has no domain, is reported, and the
one before it stays in force.

Buckets are in the program itself. With --data they, and the limits and entities
that are stored, are also in a file of that directory, and outlive the process and
the machine's power. With --store dynamodb, or --store valkey, they are in a table
that all replicas share; it must be there and in order for the service to start.

Backup, restore and all changes of state are answered on a listener of their own: a
Unix socket that only its user can open, admin.sock in the data directory and in the run
directory. With server.admin.address it is on TCP as well, and asks there for a token
or a client certificate, see ratelimit token.

Started with the environment variables of envoyproxy/ratelimit, and without a file,
it honours them: RUNTIME_ROOT, CONFIG_TYPE=GRPC_XDS_SOTW and so on. "ratelimit" alone
is then "ratelimit serve".

On SIGTERM it says that it is not ready and goes on answering for the time that
drain gives (10s), so that gateways can turn to others; then it ends the calls in
flight, returns the tokens of its leases, and stops. On Ctrl-C it does
not wait. A second signal ends it at once.`,
		Example: `  ratelimit serve --demo --traffic
  ratelimit serve --config ratelimit.yaml --grpc-address 0.0.0.0:8081
  ratelimit serve --config ratelimit.yaml --data /var/lib/ratelimit
  ratelimit serve --config ratelimit.yaml --store dynamodb --table ratelimit --region eu-central-1`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP) // first: it never ends the service
			defer signal.Stop(hangups)
			f.hangups = hangups
			variables, err := f.UseEnvironment()
			if err != nil {
				return err
			}
			cfg, err := f.Load()
			if err != nil && variables != nil {
				cmd.PrintErrf("note: the environment is that of envoyproxy/ratelimit, by %s: its rules are looked for in %s; ratelimit serve --help has other ways\n",
					strings.Join(slices.Concat(variables.Honoured, variables.Accepted, variables.Ignored), ", "), variables.Rules)
			}
			if err != nil {
				return err
			}
			f.variables = variables
			if err := f.override(cfg); err != nil {
				return err
			}
			return f.serve(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.Flags(cmd)
	cmd.Flags().BoolVar(&f.traffic, "traffic", false, "with --demo: have the service call itself a few times a second, so that there is something to see")
	cmd.Flags().StringVar(&f.XDS, "xds", "", "control plane that hands out rules over ADS, host:port (overrides the default of xds.address)")
	cmd.Flags().StringVar(&f.mirror, "mirror", "", "another rate limit service, host:port, that is asked too to compare its answers (overrides mirror)")
	cmd.Flags().StringVar(&f.grpcAddress, "grpc-address", "", "where to answer gRPC, host:port or unix:PATH (overrides server.grpc.address)")
	cmd.Flags().StringVar(&f.httpAddress, "http-address", "", "where to answer HTTP, host:port (overrides server.http.address)")
	cmd.Flags().StringVar(&f.admin, "admin-address", "", "where to answer administration: unix:PATH, host:port beside the socket, or off (overrides server.admin.address)")
	cmd.Flags().StringVar(&f.store, "store", "", "embedded, dynamodb or valkey (overrides store.type)")
	cmd.Flags().StringVar(&f.data, "data", "", "directory in which the store embedded keeps everything (overrides store.embedded.data)")
	cmd.Flags().BoolVar(&f.newData, "new-data", false, "make an empty data file where the one of the directory is missing: all buckets are full then; for one start")
	cmd.Flags().StringVar(&f.dynamodb.Table, "table", "", "table of the store dynamodb or valkey (overrides store.dynamodb.table, or that of valkey)")
	cmd.Flags().StringVar(&f.dynamodb.Region, "region", "", "region of the store dynamodb (overrides store.dynamodb.region)")
	cmd.Flags().StringVar(&f.dynamodb.Endpoint, "endpoint", "", "its endpoint, a URL (overrides store.dynamodb.endpoint)")
	return cmd
}

// override puts the flags' values in place of the file's.
func (f *serveFlags) override(cfg *config.Config) error {
	if f.traffic && !f.Demo {
		return errors.New("--traffic takes tokens of the example rules: add --demo, or leave it out")
	}
	if f.grpcAddress != "" {
		cfg.Server.GRPC.Address = f.grpcAddress
	}
	if f.mirror != "" {
		if !yamlcfg.IsAddress(f.mirror) {
			return fmt.Errorf("--mirror is %q; it must be host:port, such as ratelimit:8081", f.mirror)
		}
		cfg.Mirror.Address = f.mirror
	}
	if f.httpAddress != "" {
		cfg.Server.HTTP.Address = f.httpAddress
	}
	if f.admin != "" {
		cfg.Server.Admin.Address = f.admin
		if err := cfg.Server.Admin.Check(); err != nil {
			return fmt.Errorf("--admin-address: %w", err)
		}
	}
	if err := f.overrideStore(&cfg.Store); err != nil {
		return err
	}
	if f.grpcAddress != "" {
		if err := config.CheckListener(f.grpcAddress); err != nil {
			return fmt.Errorf("--grpc-address: %w", err)
		}
	}
	if _, _, err := net.SplitHostPort(f.httpAddress); f.httpAddress != "" && err != nil {
		return fmt.Errorf("--http-address is %q; it must be host:port, such as 127.0.0.1:8080", f.httpAddress)
	}
	return nil
}

func (f *serveFlags) overrideStore(store *config.Store) error {
	switch kind := config.StoreType(f.store); kind {
	case "":
	case config.StoreEmbedded, config.StoreDynamoDB, config.StoreValkey:
		store.Type = kind
	default:
		return fmt.Errorf("--store is %q; it must be embedded, dynamodb or valkey", f.store)
	}
	if f.data != "" {
		if store.Type != config.StoreEmbedded {
			return fmt.Errorf("--data is for the store embedded, and the store is %s: leave it out, or add --store embedded", store.Type)
		}
		store.Embedded.Data = f.data
	}
	if f.newData {
		if store.Type != config.StoreEmbedded || store.Embedded.Data == "" {
			return errors.New("--new-data is for a data directory: add --data, or leave it out")
		}
		store.Embedded.NewData = true
	}
	tables := map[config.StoreType]*string{config.StoreDynamoDB: &store.DynamoDB.Table, config.StoreValkey: &store.Valkey.Table}
	for _, flag := range []struct {
		name, value string
		out         *string // of the store; nil = it has no such setting
	}{
		{"--table", f.dynamodb.Table, tables[store.Type]},
		{"--region", f.dynamodb.Region, &store.DynamoDB.Region},
		{"--endpoint", f.dynamodb.Endpoint, &store.DynamoDB.Endpoint},
	} {
		if flag.value == "" {
			continue
		}
		if flag.out == nil || store.Type != config.StoreDynamoDB && flag.name != "--table" {
			return fmt.Errorf("%s is for the store dynamodb, and the store is %s: add --store dynamodb", flag.name, store.Type)
		}
		*flag.out = flag.value
	}
	if err := cmp.Or(store.DynamoDB.Check(), store.Valkey.Check()); err != nil { // the file's own settings are in order
		return fmt.Errorf("the configuration with the flags in place of its values: %w", err)
	}
	return nil
}

// serve runs the service until ctx ends, and then drains it.
func (f *serveFlags) serve(ctx context.Context, cfg *config.Config, stdout, stderr io.Writer) error {
	log := command.NewLogger(stderr, cfg.Log)
	if n := len(cfg.Warnings); n > 0 && f.variables == nil { // in one line, not to bury the greeting
		log.WarnContext(ctx, "the configuration has warnings", "count", n, "see", f.Check())
	}
	f.tellVariables(ctx, cfg, log)
	defer runtime.KeepAlive(keepWithin(ctx, log))
	s, err := New(ctx, cfg, log)
	if err != nil {
		return command.Failed(err)
	}
	err = s.followControlPlane(ctx)
	if err == nil {
		err = s.control.await(ctx, &cfg.XDS, log)
	}
	if err == nil {
		err = s.listen(ctx, cmp.Or(f.keys, ownListenKeys()))
	}
	if err != nil {
		s.Close(context.WithoutCancel(ctx))
		if ctx.Err() != nil { // it was stopped before there were rules
			return nil
		}
		return command.Failed(err)
	}
	if _, err := io.WriteString(stdout, s.greeting(f.Demo)); err != nil {
		log.WarnContext(ctx, "cannot write to the standard output", "error", err)
	}
	opts := f.Options()
	opts.Current, s.traffic, s.check = cfg, f.traffic, f.CheckAnywhere()
	return command.Failed(s.run(ctx, f.File, opts, f.hangups))
}

// tellVariables says which variables of envoyproxy/ratelimit have an effect.
func (f *serveFlags) tellVariables(ctx context.Context, cfg *config.Config, log *slog.Logger) {
	v := f.variables
	if v == nil {
		return
	}
	log.InfoContext(ctx, "started as another service is: its settings are the defaults", "honoured", v.Honoured, "rules", v.Rules)
	for _, w := range cfg.Warnings {
		log.WarnContext(ctx, "configuration", "warning", w.String())
	}
	if len(v.Ignored) > 0 {
		log.WarnContext(ctx, "variables without effect here", "names", v.Ignored)
	}
	const stores = "REDIS_URL names a server that replicas share, RATELIMIT_TABLE a DynamoDB table, and RATELIMIT_DATA a directory for one replica"
	switch {
	case cfg.Store.Type != config.StoreEmbedded:
	case v.Other != "":
		log.WarnContext(ctx, "a Redis or Memcached is set, and buckets are in this process all the same, so n replicas admit n times each limit. "+stores, "setting", v.Other)
	case v.Storeless && f.File == "" && cfg.Store.Embedded.Data == "":
		log.WarnContext(ctx, "no store is set: buckets are in this process, and n replicas admit n times each limit. "+stores)
	}
}
