package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// bucketFlags name one bucket.
type bucketFlags struct{ entity, resource, limit, variant string }

func (f *bucketFlags) flags(flags *pflag.FlagSet, limit string) {
	filledVar(flags, &f.entity, "entity", "entity of the bucket")
	filledVar(flags, &f.resource, "resource", "resource of the bucket")
	filledVar(flags, &f.limit, "limit", limit)
	filledVar(flags, &f.variant, "variant", "variant of the bucket, where the entity has several for the resource: list buckets -o wide shows them, and "+api.OrdinaryVariant+" is the ordinary one (default: the only one)")
}

func (f *bucketFlags) check() error {
	if f.entity == "" || f.resource == "" {
		return errors.New("say which bucket: --entity ID --resource NAME")
	}
	return nil
}

func getBucket(o *operator) *cobra.Command {
	var f bucketFlags
	cmd := &cobra.Command{
		Use: "bucket", Short: "Show one bucket: balances, where its limits are from, when it is full", Args: command.NoArgs,
		Long: `get bucket shows the bucket of an entity for a resource as it stands: the balance of each limit,
the time at which it is full if no request takes from it, and the level, the plan or the
rule that its limits are from. -o wide adds the tokens on lease, the leases and the shards of a
fleet, and the variant. A bucket that was not used since it was last full is not stored.`,
		Example: `  ratelimit get bucket --entity key/k-123 --resource gpt-4
  ratelimit get bucket --entity user/ada --resource api --variant 59ddad6b84ddafc7 -o yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			n, err := o.inNamespace(cmd.Context())
			if err != nil {
				return err
			}
			b, err := n.Bucket(cmd.Context(), api.BucketOf{Entity: api.Name(f.entity), Resource: api.Name(f.resource), Limit: f.limit, Variant: f.variant})
			if err != nil {
				return o.refusal(o.choices(err))
			}
			return command.WriteOne(cmd.OutOrStdout(), o.output, detailColumns(), bucketRows([]api.Bucket{*b}), b)
		},
	}
	f.flags(cmd.Flags(), "NAME of a limit of the bucket, where the entity has several for the resource")
	return cmd
}

// detailColumns are those of one bucket.
func detailColumns() []command.Column[bucketRow] {
	all := bucketColumns()
	for i := range all {
		if all[i].Title == "FROM" {
			all[i].Wide = false
		}
	}
	fullAt := command.Column[bucketRow]{Title: "FULL AT", Value: func(r bucketRow) string { return dash(command.Moment(r.limit.FullAt)) }}
	return append(all[:len(all)-1:len(all)-1], fullAt, all[len(all)-1],
		command.Column[bucketRow]{Title: "SHARDS", Wide: true, Value: func(r bucketRow) string { return strconv.Itoa(max(r.of.Shards, 1)) }},
		command.Column[bucketRow]{Title: "LEASES", Wide: true, Value: func(r bucketRow) string { return strconv.Itoa(r.of.Leases) }},
	)
}

// choices has the refusal of a request that several buckets fit show them as a table, with the flag
// that names each.
func (o *operator) choices(err error) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || len(p.Choices) == 0 {
		return err
	}
	columns := []command.Column[bucketRow]{
		{Title: "ADD", Value: func(r bucketRow) string { return "--variant " + r.of.Variant }},
		{Title: "FROM", Value: bucketRow.from},
		{Title: "LIMIT", Value: bucketRow.name},
		{Title: "RATE", Limit: bucketRow.name, Value: func(r bucketRow) string { return r.limit.Limit.Rate }},
		{Title: "BURST", Limit: bucketRow.name, Value: func(r bucketRow) string { return orNone(r.limit.Limit.Burst) }},
		{Title: "AVAILABLE", Limit: bucketRow.name, Value: func(r bucketRow) string { return balanceText(r.limit.Available) }},
	}
	var table strings.Builder
	if err := command.WriteTable(&table, false, columns, bucketRows(p.Choices)); err != nil {
		return err
	}
	told := *p
	told.Detail = fmt.Sprintf("entity %s has several buckets for resource %s in namespace %s: say which with one of\n%s",
		p.Choices[0].Entity, p.Choices[0].Resource, api.Name(o.namespace), strings.TrimSuffix(table.String(), "\n"))
	return &told
}
