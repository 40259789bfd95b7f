package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxBusiest bounds the buckets that capacity names.
const maxBusiest = 1000

// NewCapacity returns the command capacity.
func NewCapacity() *cobra.Command {
	var o operator
	var busiest int
	cmd := &cobra.Command{
		Use: "capacity RESOURCE", Short: "Show the tokens left for a resource, and the busiest entities",
		Long: `capacity sums up the buckets in use of a resource: the tokens that they hold when full, those
that are left, and how many are empty or in debt. It also shows the entities that used the
greatest part of a limit. It reads every bucket of the resource, page by page.`,
		Example: `  ratelimit capacity gpt-4
  ratelimit capacity gpt-4 --busiest 50 -o json`,
		Args:              oneName("one resource, such as gpt-4"),
		ValidArgsFunction: completer{&o}.resource,
		RunE: func(cmd *cobra.Command, args []string) error {
			if busiest < 0 || busiest > maxBusiest {
				return fmt.Errorf("--busiest is %d; it must be 0 to %d", busiest, maxBusiest)
			}
			r, err := o.capacity(cmd, api.Name(args[0]), busiest)
			if err != nil {
				return err
			}
			return writeCapacity(cmd.OutOrStdout(), o.output, r)
		},
	}
	o.flags(cmd)
	cmd.Flags().IntVar(&busiest, "busiest", 10, "how many of the busiest buckets to show")
	return cmd
}

// capacity reads the buckets of a resource.
func (o *operator) capacity(cmd *cobra.Command, resource api.Name, busiest int) (*capacityReport, error) {
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return nil, err
	}
	r := newCapacityReport(resource, busiest)
	line := newProgress(cmd.ErrOrStderr(), "buckets")
	defer line.end()
	list := func(p api.Page) (*api.List[api.Bucket], error) {
		p.Size = limiter.MaxPage
		return n.ListBuckets(cmd.Context(), api.LimitsOf{Resource: resource}, p)
	}
	for b, err := range api.Each(list) {
		if err != nil {
			return nil, o.refusalIn(cmd.Context(), err)
		}
		r.Add(b)
		line.line(command.Count(r.Buckets, "bucket"))
	}
	if r.Buckets == 0 {
		o.noteNowhere(cmd.Context(), n, "", resource)
	}
	return r, nil
}

// percent writes thousandths as percents, rounded down.
func percent(thousandths int64) string { return fmt.Sprintf("%d%%", thousandths/10) }

func (l capacityLimit) limitName() string { return l.Name }

func (b capacityBucket) limitName() string { return b.Name }

func capacityColumns() []command.Column[capacityLimit] {
	return []command.Column[capacityLimit]{
		{Title: "LIMIT", Value: func(l capacityLimit) string { return l.Name }},
		{Title: "BUCKETS", Amount: true, Value: func(l capacityLimit) string { return strconv.Itoa(l.Buckets) }},
		{Title: "CAPACITY", Limit: capacityLimit.limitName, Value: func(l capacityLimit) string { return l.Capacity.String() }},
		{Title: "AVAILABLE", Limit: capacityLimit.limitName, Value: func(l capacityLimit) string { return l.Available.String() }},
		{Title: "USED", Value: func(l capacityLimit) string { return percent(l.Used) }},
		{Title: "EMPTY", Amount: true, Value: func(l capacityLimit) string { return strconv.Itoa(l.Empty) }},
		{Title: "IN DEBT", Amount: true, Value: func(l capacityLimit) string { return strconv.Itoa(l.InDebt) }},
	}
}

func busiestColumns() []command.Column[capacityBucket] {
	return []command.Column[capacityBucket]{
		{Title: "BUSIEST", Value: func(b capacityBucket) string { return b.Entity.String() }},
		{Title: "LIMIT", Value: func(b capacityBucket) string { return b.Name }},
		{Title: "RATE", Limit: capacityBucket.limitName, Value: func(b capacityBucket) string { return b.Rate }},
		{Title: "AVAILABLE", Limit: capacityBucket.limitName, Value: func(b capacityBucket) string { return b.Available.String() }},
		{Title: "USED", Value: func(b capacityBucket) string { return percent(b.Used) }},
		{Title: "VARIANT", Wide: true, Value: func(b capacityBucket) string { return dash(b.Variant) }},
		{Title: "FROM", Wide: true, Value: func(b capacityBucket) string { return dash(b.Source) }},
	}
}

func writeCapacity(w io.Writer, form string, r *capacityReport) error {
	if err := command.WriteOne(w, form, capacityColumns(), r.Limits, r); err != nil || form == command.OutputJSON || form == command.OutputYAML || len(r.Busiest) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return command.Failed(err)
	}
	return command.Failed(command.WriteTable(w, form == command.OutputWide, busiestColumns(), r.Busiest))
}
