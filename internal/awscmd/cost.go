package awscmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
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
	var output, store string
	var single, noUsage bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Estimate what the table of a fleet costs, from its traffic",
		Long: `cost estimates the bill of DynamoDB for a table in a month, on demand. Prices are inputs: look
up those of the region. With --store valkey it estimates the messages, the processor and the
memory that a Valkey or Redis server needs. The numbers follow the measurements of
docs/benchmarks.md and docs/valkey.md; it is an estimate for planning.`,
		Example: `  ratelimit cost --calls 5000 --keys 200000 --hot-keys 50 --hot-share 0.8 --replicas 6
  ratelimit cost --store valkey --calls 5000 --keys 200000`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Traffic.Leases = !single
			if err := r.Traffic.Check(); err != nil {
				return fmt.Errorf("--%w", err)
			}
			if err := checkCostStore(cmd.Flags(), store); err != nil {
				return err
			}
			if store == string(config.StoreValkey) {
				s := serverReport{Traffic: r.Traffic, Server: estimateServer(r.Traffic, !noUsage)}
				if output != command.OutputTable {
					return command.WriteOne[serverReport](cmd.OutOrStdout(), output, nil, nil, s)
				}
				return command.Failed(printServer(cmd.OutOrStdout(), s.Server))
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
	cmd.Flags().StringVar(&store, "store", string(config.StoreDynamoDB), "dynamodb or valkey")
	cmd.Flags().BoolVar(&noUsage, "no-usage", false, "store.valkey.usage is false")
	outputFlag(cmd, &output, command.OutputTable, command.OutputTable, command.OutputJSON, command.OutputYAML)
	return cmd
}

// checkCostStore refuses flags that the store has no use for.
func checkCostStore(flags *pflag.FlagSet, store string) error {
	unused, known := map[config.StoreType][]string{
		config.StoreDynamoDB: {"no-usage"},
		config.StoreValkey:   {"write-units", "namespaces", "usage-windows", "write-price", "read-price", "storage-price", "recovery-price", "price-date"},
	}[config.StoreType(store)]
	if !known {
		return fmt.Errorf("--store is %.100q; it must be dynamodb or valkey", store)
	}
	for _, name := range unused {
		if flags.Changed(name) {
			return fmt.Errorf("--%s has no effect with --store %s; leave it out", name, store)
		}
	}
	return nil
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
		cmd.Flags().Var((*number)(f.value), f.name, f.usage)
	}
	cmd.Flags().StringVar(&r.Prices.Date, "price-date", r.Prices.Date, "date of the prices, for the output")
}

// number is a flag of a number, whose digits may be grouped: 25_000_000.
type number float64

// String implements pflag.Value.
func (n *number) String() string { return strconv.FormatFloat(float64(*n), 'g', -1, 64) }

// Type implements pflag.Value.
func (n *number) Type() string { return "float" }

// Set implements pflag.Value.
func (n *number) Set(text string) error {
	whole, _, _ := strings.Cut(text, ".")
	if strings.Contains(whole, "_") {
		tokens, ok := yamlcfg.ParseInteger(whole)
		if !ok {
			return fmt.Errorf("%q is no number such as 25_000_000", text)
		}
		text = strconv.FormatInt(tokens, 10) + text[len(whole):]
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", text)
	}
	*n = number(v)
	return nil
}

func printCost(out io.Writer, r costReport) error {
	e := r.Estimate
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintf(w, `writes a second	%.1f (%.4f a call)
busiest item	%.0f writes a second; about 1000 are possible, and a bucket is split before
read units a second	%.1f at most
stored	%.2f GB
usage	%.1f writes a second at most, by an aggregator
reports	%.1f write units a second at most, of replicas and an aggregator for each other
writes	$%.2f a month
usage	$%.2f a month
reads	$%.2f a month
reports	$%.2f a month
storage	$%.2f a month
total	$%.2f a month
one write for each bucket of a call	$%.2f a month
prices	of %s: $%g a million writes, $%g a million reads, $%g a GB
`, e.Writes, e.WritesPerCall, e.HottestItem, e.Reads, e.Bytes/1e9, e.UsageWrites, e.ReportUnits, e.WriteDollars, e.UsageDollars, e.ReadDollars, e.ReportDollars, e.StorageDollars, e.Dollars, e.OneWriteDollars,
		r.Prices.Date, r.Prices.Write, r.Prices.Read, r.Prices.Storage)
	if err != nil {
		return err
	}
	return w.Flush()
}
