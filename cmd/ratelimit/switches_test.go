package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The help of a switch shows no value: pflag takes words in backquotes for the name of one.
func TestSwitchesShowNoValue(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); f.Value.Type() == "bool" && value != "" {
				t.Errorf("%s --%s: the help shows the value %q", cmd.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}
