package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
)

// NewSchema returns the command that prints the JSON Schema of the configuration.
func NewSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of ratelimit.yaml, for editors",
		Long: `schema prints the JSON Schema (draft 2020-12) of the configuration. An editor completes and
describes its keys by it. Editors with yaml-language-server find it by a comment in the
first line of the configuration:

  # yaml-language-server: $schema=ratelimit.schema.json

ratelimit check finds more mistakes: it also compares values with each other.`,
		Example: `  ratelimit schema > ratelimit.schema.json`,
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := config.JSONSchema()
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", schema)
			}
			return command.Failed(err)
		},
	}
}
