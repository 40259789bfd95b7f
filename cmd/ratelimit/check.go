package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCheck() *cobra.Command {
	var src source
	var strict bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validate a configuration and its rules",
		Long: `check reads the configuration as serve would and reports every mistake in it, each
with file, line, path and the correct form. It exits with 0 when the
configuration can be used, also when there are warnings (with --strict: 2).`,
		Example: "  ratelimit check --config ratelimit.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := src.load()
			if err != nil {
				return err
			}
			warnings := len(cfg.Warnings)
			for _, w := range cfg.Warnings {
				cmd.PrintErrln(w)
			}
			for _, err := range unusableTLS(cfg.Server) {
				cmd.PrintErrf("warning: %v; without it the service does not start\n", err)
				warnings++
			}
			rules := 0
			for _, d := range cfg.Rules.Domains() {
				rules += len(d.Rules())
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: %s, %s, %s, %s\n", count(len(cfg.Files), "file"),
				count(len(cfg.Rules.Domains()), "domain"), count(rules, "rule"), count(warnings, "warning"))
			if err != nil {
				return failed(err)
			}
			if strict && warnings > 0 {
				return fmt.Errorf("%s, and --strict allows none", count(warnings, "warning"))
			}
			return nil
		},
	}
	src.flags(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	return cmd
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
