package awscmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
)

// costReport is the output of cost.
type costReport struct {
	Traffic  costTraffic  `json:"traffic"`
	Prices   costPrices   `json:"prices"`
	Estimate costEstimate `json:"estimate"`
}

// NewCost returns the command cost.
func NewCost() *cobra.Command {
	known := knownPrices()
	r := costReport{
		Traffic: costTraffic{Calls: 1000, Keys: 10_000, Levels: 1, WriteUnits: 1, Replicas: 3, Namespaces: 1, Leases: true},
		Prices:  known,
	}
	var output string
	var single bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Estimate the bill of a fleet's table from its traffic",
		Long: `cost estimates the bill of DynamoDB for a table in a month, on demand. The numbers of writes
follow the measurements of docs/benchmarks.md; it is an estimate for planning. Prices
are inputs: look up those of the region.`,
		Example: "  ratelimit cost --calls 5000 --keys 200000 --hot-keys 50 --hot-share 0.8 --replicas 6",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Traffic.Leases = !single
			if err := r.Traffic.Check(); err != nil {
				return fmt.Errorf("--%w", err)
			}
			if cmd.Flags().Changed("write-price") && !cmd.Flags().Changed("price-date") {
				r.Prices.Date = "given"
			}
			r.Estimate = estimateCost(r.Traffic, r.Prices)
			if output != command.OutputTable {
				return command.WriteOne[costReport](cmd.OutOrStdout(), output, nil, nil, r)
			}
			return command.Failed(printCost(cmd.OutOrStdout(), r))
		},
	}
	costFlags(cmd, &r)
	cmd.Flags().BoolVar(&single, "no-leases", false, "all rules say lease: none")
	outputFlag(cmd, &output, command.OutputTable, command.OutputTable, command.OutputJSON, command.OutputYAML)
	return cmd
}

func costFlags(cmd *cobra.Command, r *costReport) {
	for _, f := range []struct {
		value       *float64
		name, usage string
	}{
		{&r.Traffic.Calls, "calls", "calls a second, as the average of a month"},
		{&r.Traffic.Keys, "keys", "buckets in use within an hour"},
		{&r.Traffic.HotKeys, "hot-keys", "busy buckets among them"},
		{&r.Traffic.HotShare, "hot-share", "share of the calls that is for busy buckets, 0 to 1"},
		{&r.Traffic.OverLimit, "over-limit", "share of the busy buckets whose demand is over their limits, 0 to 1"},
		{&r.Traffic.Levels, "levels", "buckets that a call takes from: 1, and one for each parent"},
		{&r.Traffic.Settled, "settled", "share of the calls that reserve and settle, 0 to 1"},
		{&r.Traffic.WriteUnits, "write-units", "write units of a write: 1 up to about 5 limits a bucket, then 2"},
		{&r.Traffic.Replicas, "replicas", "replicas of the service"},
		{&r.Traffic.Namespaces, "namespaces", "namespaces that the rules name"},
		{&r.Traffic.UsageWindows, "usage-windows", "windows of usage that an aggregator writes: 0 without one, else 1 to 3"},
		{&r.Prices.Write, "write-price", "dollars for a million write units"},
		{&r.Prices.Read, "read-price", "dollars for a million read units"},
		{&r.Prices.Storage, "storage-price", "dollars for a GB and a month"},
		{&r.Prices.Recovery, "recovery-price", "dollars of point-in-time recovery for a GB and a month; 0 = off"},
	} {
		cmd.Flags().Float64Var(f.value, f.name, *f.value, f.usage)
	}
	cmd.Flags().StringVar(&r.Prices.Date, "price-date", r.Prices.Date, "date of the prices, for the output")
}

func printCost(out io.Writer, r costReport) error {
	e := r.Estimate
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintf(w, `writes a second	%.1f (%.4f a call)
busiest item	%.0f writes a second; about 1000 are possible, and a bucket is split before
read units a second	%.1f at most
stored	%.2f GB
usage	%.1f writes a second at most, by an aggregator
writes	$%.2f a month
usage	$%.2f a month
reads	$%.2f a month
storage	$%.2f a month
total	$%.2f a month
one write for each bucket of a call	$%.2f a month
prices	of %s: $%g a million writes, $%g a million reads, $%g a GB
`, e.Writes, e.WritesPerCall, e.HottestItem, e.Reads, e.Bytes/1e9, e.UsageWrites, e.WriteDollars, e.UsageDollars, e.ReadDollars, e.StorageDollars, e.Dollars, e.OneWriteDollars,
		r.Prices.Date, r.Prices.Write, r.Prices.Read, r.Prices.Storage)
	if err != nil {
		return err
	}
	return w.Flush()
}
