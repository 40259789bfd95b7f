package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

func namespaceColumns() []command.Column[api.Namespace] {
	return []command.Column[api.Namespace]{
		{Title: "NAME", Value: func(n api.Namespace) string { return n.Name.String() }},
		{Title: "STATE", Value: func(n api.Namespace) string { return string(n.State) }},
		{Title: "SINCE", Value: func(n api.Namespace) string { return dash(command.Moment(n.Since)) }},
		{Title: "ID", Value: func(n api.Namespace) string { return dash(n.ID) }},
		{Title: "CREATED", Value: func(n api.Namespace) string { return dash(command.Moment(n.CreatedAt)) }},
	}
}

func listNamespaces(o *operator) *cobra.Command {
	var size int
	var f api.NamespaceFilter
	cmd := &cobra.Command{
		Use: "namespaces", Aliases: []string{"namespace"}, Short: "List the namespaces in use", Args: command.NoArgs,
		Example: `  ratelimit list namespaces -o json
  ratelimit list namespaces --deleted`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect(cmd.Context())
			if err != nil {
				return err
			}
			return writeList(o, cmd.OutOrStdout(), size, namespaceColumns(), api.Each(func(p api.Page) (*api.List[api.Namespace], error) {
				return c.ListNamespaces(cmd.Context(), f, p)
			}))
		},
	}
	cmd.Flags().BoolVar(&f.Deleted, "deleted", false, "those that are deleted, being purged or purged, and no others")
	sizeFlag(cmd, &size)
	return cmd
}

const oneNamespace = "a namespace, such as tenant-a"

func getNamespace(o *operator) *cobra.Command {
	return &cobra.Command{
		Use: "namespace NAME", Short: "Show a namespace and its state", Args: oneName(oneNamespace), ValidArgsFunction: completer{o}.namespace,
		Example: "  ratelimit get namespace tenant-a",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := o.named(cmd, args[0])
			if err != nil {
				return err
			}
			ns, err := n.Get(cmd.Context())
			return show(cmd, o, namespaceColumns(), ns, err)
		},
	}
}

func createNamespace(o *operator) *cobra.Command {
	cmd := &cobra.Command{
		Use: "namespace NAME", Short: "Create a namespace, also one that was purged", Args: oneName(oneNamespace),
		Long: `create namespace brings a namespace into use. The first decision or change in a namespace does
so too, but for one that was purged.`,
		Example: "  ratelimit create namespace tenant-a",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.move(cmd, args[0], (*api.NamespaceClient).Create, "exists already")
		},
	}
	o.switchFlags(cmd)
	return cmd
}

func recoverNamespace(o *operator) *cobra.Command {
	cmd := &cobra.Command{
		Use: "namespace NAME", Short: "Recover a deleted namespace", Args: oneName(oneNamespace), ValidArgsFunction: completer{o}.namespace,
		Long: `recover namespace undoes delete namespace: entities, limits and balances are as they were. One
whose purge has begun cannot be recovered.`,
		Example: "  ratelimit recover namespace tenant-a",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.move(cmd, args[0], (*api.NamespaceClient).Recover, "is active already")
		},
	}
	o.switchFlags(cmd)
	return cmd
}

func deleteNamespace(o *operator) *cobra.Command {
	cmd := &cobra.Command{
		Use: "namespace NAME", Short: "Delete a namespace, which can be recovered", Args: oneName(oneNamespace), ValidArgsFunction: completer{o}.namespace,
		Long: `delete namespace has every request denied that would take from the namespace. Nothing is lost:
recover namespace undoes it. purge namespace deletes its content for good.`,
		Example: "  ratelimit delete namespace tenant-a --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.confirm(cmd, "namespace "+api.Name(args[0]).String()+", so that its requests are denied"); err != nil {
				return err
			}
			return o.move(cmd, args[0], (*api.NamespaceClient).Delete, "was deleted already")
		},
	}
	o.switchFlags(cmd)
	o.yesFlag(cmd)
	return cmd
}

// move changes the state of a namespace, and says so; already is the text for no change.
func (o *operator) move(
	cmd *cobra.Command, name string,
	to func(*api.NamespaceClient, context.Context, api.ClientOptions) (*api.Change[api.Namespace], error), already string,
) error {
	n, err := o.named(cmd, name)
	if err != nil {
		return err
	}
	change, err := to(n, cmd.Context(), o.options())
	if err != nil {
		return o.refusal(err)
	}
	text := string(change.Result)
	switch change.Result {
	case api.Unchanged:
		text = already
	case api.Changed:
		text = "recovered"
	case api.Created, api.Deleted, api.Repeated:
	}
	return command.Report(cmd, o.output, "namespace "+api.Name(name).String()+" "+text, change)
}
