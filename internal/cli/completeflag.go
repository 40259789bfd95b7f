package cli

import (
	"github.com/spf13/cobra"
)

// completion is a function that completes an argument.
type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// offerFiles completes an argument that names a file.
func offerFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// flagOf returns the value of a flag that a command may have.
func flagOf(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// completeFlag is a completion of a flag's value by that of an argument.
func completeFlag(argument completion) completion {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return argument(cmd, nil, typed)
	}
}
