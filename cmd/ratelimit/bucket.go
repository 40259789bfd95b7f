package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
)

// bucketRow is one limit of a bucket, as a table shows it.
type bucketRow struct {
	of    *api.Bucket
	limit api.BucketLimit
}

func bucketColumns() []column[bucketRow] {
	return []column[bucketRow]{
		{title: "ENTITY", value: func(r bucketRow) string { return r.of.Entity.String() }},
		{title: "RESOURCE", value: func(r bucketRow) string { return r.of.Resource.String() }},
		{title: "LIMIT", value: func(r bucketRow) string { return r.limit.Name }},
		{title: "RATE", value: func(r bucketRow) string { return r.limit.Limit.Rate }},
		{title: "BURST", value: func(r bucketRow) string { return orNone(r.limit.Limit.Burst) }},
		{title: "AVAILABLE", value: func(r bucketRow) string {
			if r.limit.Available == nil {
				return "-"
			}
			return r.limit.Available.String()
		}},
		{title: "LEASED", wide: true, value: func(r bucketRow) string { return r.limit.Leased.String() }},
		{title: "VARIANT", wide: true, value: func(r bucketRow) string { return dash(r.of.Variant) }},
	}
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
	var limit int
	cmd := &cobra.Command{
		Use: "buckets", Short: "List buckets in use and their balances", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := o.inNamespace(cmd.Context())
			if err != nil {
				return err
			}
			list := api.List[api.Bucket]{Items: []api.Bucket{}}
			of := client.LimitsOf{Entity: api.Name(entity), Resource: api.Name(resource)}
			for b, err := range client.Each(func(p client.Page) (*api.List[api.Bucket], error) { return n.ListBuckets(cmd.Context(), of, p) }) {
				if err != nil {
					return o.refusal(err)
				}
				if list.Items = append(list.Items, b); len(list.Items) == limit {
					break
				}
			}
			slices.SortFunc(list.Items, func(a, b api.Bucket) int { // the store has them in no order
				return cmp.Or(cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Variant, b.Variant))
			})
			return writeOne(cmd.OutOrStdout(), o.output, bucketColumns(), bucketRows(list.Items), list)
		},
	}
	cmd.Flags().StringVar(&entity, "entity", "", "only buckets of this entity")
	cmd.Flags().StringVar(&resource, "resource", "", "only buckets for this resource")
	limitFlag(cmd, &limit)
	return cmd
}

// adjustment returns the noun bucket of a verb that changes balances.
func adjustment(verb, short string) func(*operator) *cobra.Command {
	return func(o *operator) *cobra.Command {
		var entity, resource string
		var change api.BucketChange
		cmd := &cobra.Command{
			Use: "bucket TOKENS", Short: short,
			Example: "  ratelimit " + verb + " bucket --entity key/k-123 --resource gpt-4 --limit tpm 1000",
			RunE: func(cmd *cobra.Command, args []string) error {
				if entity == "" || resource == "" {
					return errors.New("say which bucket: --entity ID --resource NAME")
				}
				if err := amount(cmd, verb, args, &change); err != nil {
					return err
				}
				change.Entity, change.Resource = api.Name(entity), api.Name(resource)
				return o.adjust(cmd, verb, change)
			},
		}
		if verb == "reset" {
			cmd.Use = "bucket"
			cmd.Example = "  ratelimit reset bucket --entity key/k-123 --resource gpt-4"
		}
		filledVar(cmd.Flags(), &entity, "entity", "entity of the bucket")
		filledVar(cmd.Flags(), &resource, "resource", "resource of the bucket")
		filledVar(cmd.Flags(), &change.Limit, "limit", "NAME of the limit whose balance changes (default: every limit of the bucket)")
		filledVar(cmd.Flags(), &change.Variant, "variant", "variant of the bucket, which list buckets -o wide shows (default: the ordinary one)")
		filledVar(cmd.Flags(), &change.Once, "once", "TEXT of which one change is made in a day, such as the number of an invoice")
		return cmd
	}
}

// amount reads the argument of a verb, which reset has not.
func amount(cmd *cobra.Command, verb string, args []string, change *api.BucketChange) error {
	if verb == "reset" {
		return noArgs(cmd, args)
	}
	if len(args) != 1 {
		return fmt.Errorf("%s needs one number of tokens, such as 1000 or 0.5", cmd.CommandPath())
	}
	tokens, err := api.ParseTokens(args[0])
	change.Tokens = &tokens
	return err
}

func (o *operator) adjust(cmd *cobra.Command, verb string, change api.BucketChange) error {
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return err
	}
	done, err := n.AdjustBucket(cmd.Context(), verb, change)
	if err != nil {
		return o.refusal(err)
	}
	if o.output != outputTable && o.output != outputWide {
		return writeOne[bucketRow](cmd.OutOrStdout(), o.output, nil, nil, done)
	}
	subject := fmt.Sprintf("bucket of entity %s for resource %s", change.Entity, change.Resource)
	if err := report(cmd.OutOrStdout(), o.output, subject, done); err != nil {
		return err
	}
	return writeOne(cmd.OutOrStdout(), o.output, bucketColumns(), bucketRows([]api.Bucket{*done.After}), nil)
}
