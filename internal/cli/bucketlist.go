package cli

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// bucketRow is one limit of a bucket, as a table shows it.
type bucketRow struct {
	of    *api.Bucket
	limit api.BucketLimit
}

// from is the origin of the limit.
func (r bucketRow) from() string { return dash(cmp.Or(r.limit.Source, r.of.Source)) }

// name is the name of the limit.
func (r bucketRow) name() string { return r.limit.Name }

func bucketColumns() []command.Column[bucketRow] {
	return []command.Column[bucketRow]{
		{Title: "ENTITY", Value: func(r bucketRow) string { return r.of.Entity.String() }},
		{Title: "RESOURCE", Value: func(r bucketRow) string { return r.of.Resource.String() }},
		{Title: "LIMIT", Value: bucketRow.name},
		{Title: "RATE", Limit: bucketRow.name, Value: func(r bucketRow) string { return r.limit.Limit.Rate }},
		{Title: "BURST", Limit: bucketRow.name, Value: func(r bucketRow) string { return orNone(r.limit.Limit.Burst) }},
		{Title: "AVAILABLE", Limit: bucketRow.name, Value: func(r bucketRow) string { return balanceText(r.limit.Available) }},
		{Title: "LEASED", Limit: bucketRow.name, Wide: true, Value: func(r bucketRow) string { return r.limit.Leased.String() }},
		{Title: "VARIANT", Wide: true, Value: func(r bucketRow) string { return dash(r.of.Variant) }},
		{Title: "FROM", Wide: true, Value: bucketRow.from},
	}
}

// balanceText is a balance, or - of an unlimited limit.
func balanceText(n *api.Tokens) string {
	if n == nil {
		return "-"
	}
	return n.String()
}

// bucketRows returns a row for each limit.
func bucketRows(all []api.Bucket) (rows []bucketRow) {
	for _, b := range all {
		for _, l := range b.Limits {
			rows = append(rows, bucketRow{&b, l})
		}
	}
	return rows
}

func listBuckets(o *operator) *cobra.Command {
	var entity, resource string
	var size int
	var shadow bool
	cmd := &cobra.Command{
		Use: "buckets", Short: "List buckets in use and their balances", Args: command.NoArgs,
		RunE: o.here(func(cmd *cobra.Command, _ []string, n *api.NamespaceClient) error {
			of := api.LimitsOf{Entity: api.Name(entity), Resource: api.Name(resource)}
			list, err := collect(o, size, func(p api.Page) (*api.List[api.Bucket], error) {
				page, err := n.ListBuckets(cmd.Context(), of, p)
				if err == nil {
					page.Items = slices.DeleteFunc(page.Items, func(b api.Bucket) bool { return b.Shadow != shadow })
				}
				return page, err
			})
			if err != nil {
				return err
			}
			if len(list.Items) == 0 {
				o.noteNowhere(cmd.Context(), n, of.Entity, of.Resource)
			}
			slices.SortFunc(list.Items, func(a, b api.Bucket) int { // the store has them in no order
				return cmp.Or(cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Variant, b.Variant))
			})
			return command.WriteOne(cmd.OutOrStdout(), o.output, bucketColumns(), bucketRows(list.Items), list)
		}),
	}
	cmd.Flags().StringVar(&entity, "entity", "", "only buckets of this entity")
	cmd.Flags().StringVar(&resource, "resource", "", "only buckets for this resource")
	cmd.Flags().BoolVar(&shadow, "shadow", false, "list the buckets of rules in shadow mode, which deny no request (default: all others)")
	sizeFlag(cmd, &size)
	return cmd
}
