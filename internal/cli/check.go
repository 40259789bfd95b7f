package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// NewCheck returns the command check.
func NewCheck() *cobra.Command {
	var src command.Source
	var strict bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validate a configuration and its rules",
		Long: `check reads the configuration as serve would and reports every mistake in it, each
with file, line, path and the correct form. It exits with 0 when the
configuration can be used, also when there are warnings (with --strict: 2).`,
		Example: "  ratelimit check --config ratelimit.yaml",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := src.Load()
			if err != nil {
				return err
			}
			warnings := len(cfg.Warnings)
			for _, w := range cfg.Warnings {
				cmd.PrintErrln(w)
			}
			for _, err := range server.UnusableTLS(cfg.Server) {
				cmd.PrintErrf("warning: %v; without it the service does not start\n", err)
				warnings++
			}
			if cfg.Note != "" {
				cmd.PrintErrln(cfg.Note)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: %s, %s, %s, %s\n", command.Count(len(cfg.Files), "file"),
				command.Count(len(cfg.Rules.Domains()), "domain"), command.Count(countRules(cfg.Rules), "rule"), command.Count(warnings, "warning"))
			if err != nil {
				return command.Failed(err)
			}
			if strict && warnings > 0 {
				return fmt.Errorf("%s, and --strict allows none", command.Count(warnings, "warning"))
			}
			return nil
		},
	}
	src.Flags(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	return cmd
}

// countRules counts the rules that the files have. That for limits that descriptors bring is in no file.
func countRules(rules *descriptor.Rules) (n int) {
	for _, d := range rules.Domains() {
		for _, r := range d.Rules() {
			if of, tree := descriptor.Quote(r); !tree || len(of.Keys) > 0 {
				n++
			}
		}
	}
	return n
}
