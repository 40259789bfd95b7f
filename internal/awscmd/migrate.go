package awscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/awscmd/migration"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

type migrateFlags struct {
	command.Source

	from         string // table of zae-limiter
	fromRegion   string
	fromEndpoint string
	namespace    string
	as           string

	balances     bool
	overwrite    bool
	acceptLosses bool
	dryRun       bool
	yes          bool
}

// NewMigrate returns the command migrate.
func NewMigrate() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate --from TABLE",
		Short: "Bring entities and limits from a table of zae-limiter",
		Long: `migrate reads a DynamoDB table of zae-limiter, versions 0.9 to 0.17, and writes its
entities, limits, hierarchy and, with --balances, its balances into the table that the
configuration names. It does not change the table that it reads.

It lists the records to make and the content that it cannot take over, and asks. Records that the table
has already stay as they are. It may be interrupted, and run again from the beginning: a
record is made once, and a balance is only ever lowered.`,
		Example: `  ratelimit migrate --from rate-limits --config ratelimit.yaml --dry-run
  ratelimit migrate --from rate-limits --config ratelimit.yaml --yes
  ratelimit migrate --from rate-limits --config ratelimit.yaml --balances --yes`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			cfg, err := f.Load()
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cfg, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.Flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "table of zae-limiter to read; required")
	flags.StringVar(&f.fromRegion, "from-region", "", "AWS region of that table (default: that of store.dynamodb)")
	flags.StringVar(&f.fromEndpoint, "from-endpoint", "", "endpoint of that table (default: that of store.dynamodb)")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "bring this namespace only (default: all)")
	flags.StringVar(&f.as, "as", "", "bring it under this name; needs --namespace")
	flags.BoolVar(&f.balances, "balances", false, "lower balances to those of the table, too")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace records that differ")
	flags.BoolVar(&f.acceptLosses, "accept-losses", false, "go on where something cannot be taken over")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list the changes, and make none")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (f *migrateFlags) check() error {
	switch {
	case f.from == "":
		return errors.New("--from is missing: it names the table of zae-limiter")
	case f.as != "" && f.namespace == "":
		return errors.New("--as gives one namespace another name: name it with --namespace")
	}
	return nil
}

// run migrates into the table of a configuration.
func (f *migrateFlags) run(ctx context.Context, cfg *config.Config, in io.Reader, out io.Writer) error {
	at := cfg.Store.DynamoDB
	if cfg.Store.Type != config.StoreDynamoDB {
		return command.Misused(fmt.Errorf("store.type is %s: a migration needs dynamodb", cfg.Store.Type))
	}
	set, err := f.read(ctx, &at, out)
	if err != nil {
		return command.Failed(err)
	}
	client, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: at.Region, Endpoint: at.Endpoint})
	if err == nil {
		prepare := dynamo.CheckTable
		if at.CreateTable {
			prepare = dynamo.CreateTable
		}
		preparing, stop := context.WithTimeout(ctx, command.StartTimeout)
		err = prepare(preparing, client, at.Table)
		stop()
	}
	if err != nil {
		return command.Failed(fmt.Errorf("store.dynamodb: %w", err))
	}
	store, err := dynamo.New(client, dynamo.Config{Table: at.Table}) //nolint:contextcheck // a store outlives its start
	if err != nil {
		return command.Failed(err)
	}
	err = f.into(ctx, store, at.Table, set, in, out)
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), command.StartAttempt)
	defer stop()
	return errors.Join(err, command.Failed(store.Close(closing)))
}

// read reads the table of zae-limiter and reports the parts that cannot be taken
// over.
func (f *migrateFlags) read(ctx context.Context, to *config.DynamoDB, out io.Writer) (*migration.Set, error) {
	from := dynamo.ClientConfig{Region: cmp.Or(f.fromRegion, to.Region), Endpoint: cmp.Or(f.fromEndpoint, to.Endpoint)}
	client, err := dynamo.NewClient(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("--from-endpoint: %w", err)
	}
	schema, set, err := migration.Read(ctx, client, f.from, migration.ReadOptions{Namespace: f.namespace, As: f.as, Now: time.Now()})
	if err != nil {
		return nil, err
	}
	return set, describeSet(out, f.from, schema, set)
}

// into compares the set with a table, asks, and writes it.
func (f *migrateFlags) into(ctx context.Context, store *dynamo.Store, table string, set *migration.Set, in io.Reader, out io.Writer) error {
	o := migration.Options{DryRun: true, Overwrite: f.overwrite, Balances: f.balances, Now: time.Now}
	plan, err := migration.Run(ctx, store, set, o)
	if err == nil {
		err = describePlan(out, table, &plan)
	}
	switch {
	case err != nil:
		return command.Failed(err)
	case f.dryRun:
		_, err = fmt.Fprintln(out, "dry run: nothing was changed")
		return command.Failed(err)
	case len(set.Losses) > 0 && !f.acceptLosses:
		return command.Failed(fmt.Errorf("%s cannot be taken over as they are; nothing was changed. --accept-losses goes on without", command.Count(len(set.Losses), "thing")))
	case !f.yes:
		if err := command.ConfirmYes(ctx, in, out, "Type yes to go on: "); err != nil {
			return err
		}
	}
	o.DryRun, o.Progress = false, progressOf(out)
	done, err := migration.Run(limiter.WithPrincipal(ctx, "migrate"), store, set, o)
	if err != nil {
		return command.Failed(fmt.Errorf("%d of %d are done: %w; run the command again", done.Done, done.Of, err))
	}
	return command.Failed(describeOutcome(out, &done, f.balances))
}
