package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// defaultUpgradeWatch is how long upgrade looks for replicas of the version before. An idle
// one renews a lease within it.
const defaultUpgradeWatch = 10 * time.Second

type upgradeFlags struct {
	source

	dryRun bool
	yes    bool
	watch  time.Duration
}

func newUpgrade() *cobra.Command {
	var f upgradeFlags
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring the buckets of a table to the form of this version",
		Long: `upgrade lets replicas write buckets in the form of this version, in all namespaces of the
table that the configuration names. Run it once, when no replica of the version before
runs any more: such a replica cannot read those buckets. Each bucket comes into the form
by the next request that takes from it. Decisions go on meanwhile.

It looks for replicas of the version before, says what it will do, and asks. It refuses
while such a replica writes. It may be interrupted, and run again.`,
		Example: `  ratelimit upgrade --config ratelimit.yaml --dry-run
  ratelimit upgrade --config ratelimit.yaml --yes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.watch <= 0 {
				return fmt.Errorf("--watch is %v; it must be above 0", f.watch)
			}
			cfg, err := f.load()
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cfg, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and change nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().DurationVar(&f.watch, "watch", defaultUpgradeWatch, "how long to look for replicas of the version before")
	return cmd
}

// run upgrades the table of a configuration.
func (f *upgradeFlags) run(ctx context.Context, cfg *config.Config, in io.Reader, out io.Writer) error {
	at := cfg.Store.DynamoDB
	if cfg.Store.Type != config.StoreDynamoDB {
		return usageError{fmt.Errorf("store.type is %s: there is a form of buckets to upgrade only with dynamodb", cfg.Store.Type)}
	}
	client, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: at.Region, Endpoint: at.Endpoint})
	if err != nil {
		return failed(fmt.Errorf("store.dynamodb: %w", err))
	}
	u, err := dynamo.NewUpgrade(ctx, client, at.Table)
	if err != nil {
		return failed(fmt.Errorf("store.dynamodb: %w", err))
	}
	names, done := u.Pending()
	if len(names) == 0 && len(u.Older()) == 0 {
		_, err = fmt.Fprintf(out, "table %s: all of %s have the form of this version; there is nothing to do\n", at.Table, count(done, "namespace"))
		return failed(err)
	}
	seen, err := u.Watch(ctx, f.watch)
	if err != nil {
		return failed(err)
	}
	if err = describeUpgrade(out, at.Table, names, done, &seen, f.watch); err != nil {
		return failed(err)
	}
	for _, v := range u.Older() {
		if _, err = fmt.Fprintln(out, v); err != nil {
			return failed(err)
		}
	}
	if n := len(seen.Replicas); n > 0 {
		return failed(fmt.Errorf("%s of the version before wrote to this table: %s; stop all such replicas, and try again", count(n, "replica"), strings.Join(seen.Replicas[:min(n, 10)], ", ")))
	}
	switch {
	case f.dryRun:
		_, err = fmt.Fprintln(out, "dry run: nothing was changed")
		return failed(err)
	case !f.yes:
		if err = confirmYes(in, out, "Replicas of the version before cannot read the buckets from then on. Type yes to go on: "); err != nil {
			return err
		}
	}
	return f.raise(ctx, u, len(names), out)
}

// describeUpgrade tells of the buckets that were found, and of the namespaces to upgrade.
func describeUpgrade(out io.Writer, table string, names []string, done int, seen *dynamo.OldReplicas, watch time.Duration) error {
	_, err := fmt.Fprintf(out, `table %s: %s to upgrade, %d upgraded already
looked at %s for %v: %d in the form before, %s of the version before wrote to them
`, table, count(len(names), "namespace"), done, count(seen.Looked, "bucket"), watch, seen.Old, count(len(seen.Replicas), "replica"))
	for i, name := range names {
		if i == 20 {
			_, more := fmt.Fprintf(out, "  and %d more\n", len(names)-i)
			return errors.Join(err, more)
		}
		_, each := fmt.Fprintf(out, "  %q\n", name)
		err = errors.Join(err, each)
	}
	return err
}

// raise raises the namespaces.
func (f *upgradeFlags) raise(ctx context.Context, u *dynamo.Upgrade, of int, out io.Writer) error {
	raised := 0
	err := u.Run(ctx, func(string) { raised++ })
	if err != nil {
		err = fmt.Errorf("%d of %s are upgraded: %w", raised, count(of, "namespace"), err)
		if errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain) {
			err = fmt.Errorf("%w; run the command again", err)
		}
		return failed(err)
	}
	_, err = fmt.Fprintf(out, "done: %s upgraded; running replicas see it within 5 s, and bring each bucket to the new form by its next write\n", count(raised, "namespace"))
	return failed(err)
}
