package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
)

func newStatus() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{
		Use: "status", Short: "Show which service answers, and what this user may do", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect(cmd.Context())
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return o.refusal(err)
			}
			return writeOne(cmd.OutOrStdout(), o.output, statusColumns(o.server), []api.Status{*s}, s)
		},
	}
	o.flags(cmd)
	return cmd
}

func statusColumns(server string) []column[api.Status] {
	return []column[api.Status]{
		{title: "VERSION", value: func(s api.Status) string { return s.Version }},
		{title: "STORE", value: func(s api.Status) string { return s.Store }},
		{title: "AUDIT", value: func(s api.Status) string { return strconv.FormatBool(s.Can.Audit) }},
		{title: "USAGE", value: func(s api.Status) string { return strconv.FormatBool(s.Can.Usage) }},
		{title: "PRINCIPAL", value: func(s api.Status) string { return dash(s.Principal) }},
		{title: "ROLE", value: func(s api.Status) string { return s.Role }},
		{title: "SERVER", wide: true, value: func(api.Status) string { return server }},
	}
}
