package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// NewCreate returns the command create.
func NewCreate() *cobra.Command {
	return newVerb("create", "Create a namespace", `create brings a namespace into use. Entities and limits are created with ratelimit set.`, createNamespace)
}

// NewRecover returns the command recover.
func NewRecover() *cobra.Command {
	return newVerb("recover", "Recover a deleted namespace", `recover undoes the deletion of a namespace.`, recoverNamespace)
}

// NewPurge returns the command purge.
func NewPurge() *cobra.Command {
	return newVerb("purge", "Delete the content of a deleted namespace for good", `purge deletes everything in a deleted namespace for good, or everything that no namespace leads to. It
can be interrupted at any time: the same command goes on.`, purgeNamespace, purgeOrphans)
}

func purgeNamespace(o *operator) *cobra.Command {
	cmd := &cobra.Command{
		Use: "namespace NAME", Short: "Delete everything in a deleted namespace for good", Args: oneName(oneNamespace), ValidArgsFunction: completer{o}.namespace,
		Long: `purge namespace deletes entities, limits, balances, usage and audit events of a deleted namespace
for good. The audit events of the namespace itself stay. From its beginning on the namespace cannot be
recovered. It can be interrupted at any time: the same command goes on. In a fleet it waits 12 seconds
first, until no replica has tokens of the balances.`,
		Example: "  ratelimit purge namespace tenant-a --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := api.Name(args[0]).String()
			if err := o.confirm(cmd, "everything in namespace "+name+" for good"); err != nil {
				return err
			}
			n, err := o.named(cmd, args[0])
			if err != nil {
				return err
			}
			return o.purge(cmd, "namespace "+name, n.Purge)
		},
	}
	o.yesFlag(cmd)
	return cmd
}

// purge repeats a request to purge until all is deleted, and shows its progress.
func (o *operator) purge(cmd *cobra.Command, subject string, slice func(context.Context) (*api.Purged, error)) error {
	line, all := newProgress(cmd.ErrOrStderr(), "records"), api.Purged{}
	for !all.Done {
		part, err := slice(cmd.Context())
		if err != nil {
			line.end()
			if err = o.refusal(err); all.Deleted > 0 || cmd.Context().Err() != nil {
				err = fmt.Errorf("%s is purged in part, and the same command goes on: %w", subject, err)
			}
			return err
		}
		all.Deleted, all.Done = all.Deleted+part.Deleted, part.Done
		line.line(fmt.Sprintf("%s: %d records deleted", subject, all.Deleted))
	}
	line.end()
	switch o.output {
	case command.OutputJSON, command.OutputYAML:
		return command.WriteOne[api.Purged](cmd.OutOrStdout(), o.output, nil, nil, all)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s purged, %d records deleted\n", subject, all.Deleted)
	return command.Failed(err)
}

func orphanColumns() []command.Column[api.Orphan] {
	return []command.Column[api.Orphan]{
		{Title: "ID", Value: func(n api.Orphan) string { return n.ID }},
		{Title: "NAME", Value: func(n api.Orphan) string { return n.Name.String() }},
		{Title: "CREATED", Value: func(n api.Orphan) string { return dash(command.Moment(n.CreatedAt)) }},
	}
}

func listOrphans(o *operator) *cobra.Command {
	var size int
	cmd := &cobra.Command{
		Use: "orphans", Short: "List the IDs of the store's table that no namespace has", Args: command.NoArgs,
		Long: `list orphans shows the IDs under which the store's table may have records that no namespace leads
to, and the names that had them. Other programs, and changes by hand, leave such. The embedded
store has none.`,
		Example: "  ratelimit list orphans",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect(cmd.Context())
			if err != nil {
				return err
			}
			return writeList(o, cmd.OutOrStdout(), size, orphanColumns(), api.Each(func(p api.Page) (*api.List[api.Orphan], error) {
				return c.ListOrphans(cmd.Context(), p)
			}))
		},
	}
	sizeFlag(cmd, &size)
	return cmd
}

// anyID is for a command that takes the ID of an orphan, or none.
func anyID(cmd *cobra.Command, args []string) error {
	if len(args) > 1 || len(args) == 1 && args[0] == "" {
		return fmt.Errorf("%s takes one ID, or none for all", cmd.CommandPath())
	}
	return nil
}

func purgeOrphans(o *operator) *cobra.Command {
	cmd := &cobra.Command{
		Use: "orphans [ID]", Short: "Delete everything under IDs that no namespace has", Args: anyID,
		Long: `purge orphans deletes everything under the IDs that list orphans shows, or under one of them, for good.
It can be interrupted at any time: the same command goes on.`,
		Example: "  ratelimit purge orphans --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "everything under the IDs that list orphans shows"
			if len(args) > 0 {
				what = "everything under the ID " + args[0]
			}
			if err := o.confirm(cmd, what+", for good"); err != nil {
				return err
			}
			c, err := o.connect(cmd.Context())
			if err != nil {
				return err
			}
			return o.purgeOrphans(cmd, c, args)
		},
	}
	o.yesFlag(cmd)
	return cmd
}

// purgeOrphans purges the orphan with an ID, or all.
func (o *operator) purgeOrphans(cmd *cobra.Command, c *api.Client, ids []string) error {
	if len(ids) == 0 {
		orphans, err := collect(o, 0, func(p api.Page) (*api.List[api.Orphan], error) { return c.ListOrphans(cmd.Context(), p) })
		if err != nil {
			return err
		}
		for _, orphan := range orphans.Items {
			ids = append(ids, orphan.ID)
		}
		if len(ids) == 0 {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "there are no orphans")
			return command.Failed(err)
		}
	}
	for _, id := range ids {
		err := o.purge(cmd, "orphan "+id, func(ctx context.Context) (*api.Purged, error) { return c.PurgeOrphan(ctx, id) })
		if err != nil {
			return err
		}
	}
	return nil
}
