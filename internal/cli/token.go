package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
)

// NewToken returns the command token.
func NewToken() *cobra.Command {
	return &cobra.Command{
		Use:   "token",
		Short: "Make a token for administration over TCP, and its hash",
		Long: `token prints a new random token, and its hash, by which a service checks it. Keep the
token as you keep keys; the hash goes into the configuration:

  server:
    admin:
      address: "127.0.0.1:8082"
      tokens:
        backups: {role: administer, hash: "sha256:..."}

Roles are read, operate and administer. Commands take the token from --token-file, or
from the environment variable ` + TokenVariable + `.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, hash := admin.NewToken()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "token  %s\nhash   %s\n", token, hash)
			return command.Failed(err)
		},
	}
}
