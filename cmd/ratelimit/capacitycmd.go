package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/capacity"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxBusiest bounds the buckets that capacity names.
const maxBusiest = 1000

func newCapacity() *cobra.Command {
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
func (o *operator) capacity(cmd *cobra.Command, resource api.Name, busiest int) (*capacity.Report, error) {
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return nil, err
	}
	r := capacity.New(resource, busiest)
	line := newProgress(cmd.ErrOrStderr(), "buckets")
	defer line.end()
	list := func(p client.Page) (*api.List[api.Bucket], error) {
		p.Size = limiter.MaxPage
		return n.ListBuckets(cmd.Context(), client.LimitsOf{Resource: resource}, p)
	}
	for b, err := range client.Each(list) {
		if err != nil {
			return nil, o.refusalIn(cmd.Context(), err)
		}
		r.Add(b)
		line.line(count(r.Buckets, "bucket"))
	}
	return r, nil
}

// percent writes thousandths as percents, rounded down.
func percent(thousandths int64) string { return fmt.Sprintf("%d%%", thousandths/10) }

func capacityColumns() []column[capacity.Limit] {
	return []column[capacity.Limit]{
		{title: "LIMIT", value: func(l capacity.Limit) string { return l.Name }},
		{title: "BUCKETS", value: func(l capacity.Limit) string { return strconv.Itoa(l.Buckets) }},
		{title: "CAPACITY", value: func(l capacity.Limit) string { return l.Capacity.String() }},
		{title: "AVAILABLE", value: func(l capacity.Limit) string { return l.Available.String() }},
		{title: "USED", value: func(l capacity.Limit) string { return percent(l.Used) }},
		{title: "EMPTY", value: func(l capacity.Limit) string { return strconv.Itoa(l.Empty) }},
		{title: "IN DEBT", value: func(l capacity.Limit) string { return strconv.Itoa(l.InDebt) }},
	}
}

func busiestColumns() []column[capacity.Bucket] {
	return []column[capacity.Bucket]{
		{title: "BUSIEST", value: func(b capacity.Bucket) string { return b.Entity.String() }},
		{title: "LIMIT", value: func(b capacity.Bucket) string { return b.Name }},
		{title: "RATE", value: func(b capacity.Bucket) string { return b.Rate }},
		{title: "AVAILABLE", value: func(b capacity.Bucket) string { return b.Available.String() }},
		{title: "USED", value: func(b capacity.Bucket) string { return percent(b.Used) }},
		{title: "VARIANT", wide: true, value: func(b capacity.Bucket) string { return dash(b.Variant) }},
		{title: "FROM", wide: true, value: func(b capacity.Bucket) string { return dash(b.Source) }},
	}
}

func writeCapacity(w io.Writer, form string, r *capacity.Report) error {
	if err := writeOne(w, form, capacityColumns(), r.Limits, r); err != nil || form == outputJSON || form == outputYAML || len(r.Busiest) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return failed(err)
	}
	return failed(writeTable(w, form == outputWide, busiestColumns(), r.Busiest))
}
