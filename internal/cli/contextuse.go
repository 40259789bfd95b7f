package cli

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
)

// ContextVariable is the environment variable that names the context in use.
const ContextVariable = "RATELIMIT_CONTEXT"

// currentContext is the name of the context in use; "" = none.
func currentContext(f *contextsFile) string { return cmp.Or(os.Getenv(ContextVariable), f.Current) }

// loadContexts reads the user's file of contexts.
func loadContexts() (*contextsFile, error) {
	path, err := contextsPath()
	if err != nil {
		return nil, err
	}
	return readContexts(path)
}

// completeContext completes the name of a context.
func completeContext(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	f, err := loadContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.Names(), cobra.ShellCompDirectiveNoFileComp
}
