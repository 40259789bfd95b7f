package main

import (
	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
)

func namespaceColumns() []column[api.Namespace] {
	return []column[api.Namespace]{
		{title: "NAME", value: func(n api.Namespace) string { return n.Name.String() }},
		{title: "ID", value: func(n api.Namespace) string { return dash(n.ID) }},
		{title: "CREATED", value: func(n api.Namespace) string { return dash(moment(n.CreatedAt)) }},
	}
}

func listNamespaces(o *operator) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "namespaces", Aliases: []string{"namespace"}, Short: "List the namespaces in use", Args: noArgs,
		Example: "  ratelimit list namespaces -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect(cmd.Context())
			if err != nil {
				return err
			}
			return writeList(o, cmd.OutOrStdout(), limit, namespaceColumns(), client.Each(func(p client.Page) (*api.List[api.Namespace], error) {
				return c.ListNamespaces(cmd.Context(), p)
			}))
		},
	}
	limitFlag(cmd, &limit)
	return cmd
}
