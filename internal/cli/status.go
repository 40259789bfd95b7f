package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// NewStatus returns the command status.
func NewStatus() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{
		Use: "status", Short: "Show which service answers, and what this user may do", Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.connect(cmd.Context())
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			return show(cmd, o, statusColumns(o.server), s, err)
		},
	}
	o.flags(cmd)
	return cmd
}

func statusColumns(server string) []command.Column[api.Status] {
	return []command.Column[api.Status]{
		{Title: "VERSION", Value: func(s api.Status) string { return s.Version }},
		{Title: "STORE", Value: func(s api.Status) string { return s.Store }},
		{Title: "AUDIT", Value: func(s api.Status) string { return strconv.FormatBool(s.Can.Audit) }},
		{Title: "USAGE", Value: func(s api.Status) string { return strconv.FormatBool(s.Can.Usage) }},
		{Title: "PRINCIPAL", Value: func(s api.Status) string { return dash(s.Principal) }},
		{Title: "ROLE", Value: func(s api.Status) string { return s.Role }},
		{Title: "SERVER", Wide: true, Value: func(api.Status) string { return server }},
	}
}
