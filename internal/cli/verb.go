package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// newVerb returns a command such as get, with a command for each noun.
func newVerb(use, short, long string, nouns ...func(*operator) *cobra.Command) *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{Use: use + " NOUN", Short: short, Long: long, RunE: unknownNoun}
	cmd.FParseErrWhitelist.UnknownFlags = true // flags of a noun; without a noun, the missing noun is the mistake to report
	o.flags(cmd)
	for _, noun := range nouns {
		sub := noun(o)
		sub.Aliases = append(sub.Aliases, otherNumber(sub.Name()))
		completer{o}.flags(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

// otherNumber is the plural of a noun, or the singular of a plural: either is understood.
func otherNumber(noun string) string {
	switch {
	case strings.HasSuffix(noun, "ies"):
		return strings.TrimSuffix(noun, "ies") + "y"
	case strings.HasSuffix(noun, "s"):
		return strings.TrimSuffix(noun, "s")
	case strings.HasSuffix(noun, "y"):
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
}

// unknownNoun says which nouns a verb has.
func unknownNoun(cmd *cobra.Command, args []string) error {
	var known []string
	for _, noun := range cmd.Commands() {
		if noun.IsAvailableCommand() {
			known = append(known, noun.Name())
		}
	}
	if len(args) == 0 {
		return fmt.Errorf("%s needs a noun: %s", cmd.CommandPath(), strings.Join(known, ", "))
	}
	if near := limiter.ClosestName(args[0], known); near != "" {
		return fmt.Errorf("unknown noun %q; did you mean %q?", args[0], near)
	}
	return fmt.Errorf("unknown noun %q; %s has %s", args[0], cmd.CommandPath(), strings.Join(known, ", "))
}

func (o *operator) flags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	o.connection.flags(flags, adminUsage)
	o.tableFlags.flags(flags)
	flags.StringVarP(&o.config, "config", "c", "", "configuration file of the service to ask (default: "+command.DefaultFile+" in the working directory, if it exists)")
	flags.StringVar(&o.data, "data", "", "data directory of the service to ask")
	o.given = func(flag string) bool { return flags.Lookup(flag).Changed }
	o.notes = cmd.ErrOrStderr
	flags.StringVarP(&o.namespace, "namespace", "n", limiter.DefaultNamespace, "namespace of the request")
	flags.StringVarP(&o.output, "output", "o", command.OutputTable, "table, wide, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContext)                                                              // the same
	_ = cmd.RegisterFlagCompletionFunc("namespace", completeFlag(completer{o}.namespace))                                       // the same
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(command.Outputs(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// flags registers the completion of the flags of a command that name records.
func (c completer) flags(cmd *cobra.Command) {
	for flag, argument := range map[string]completion{
		"entity": c.entity, "parent": c.entity, "resource": c.resource, "limit": c.limitName, "variant": c.variant,
	} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Value.Type() == "string" {
			_ = cmd.RegisterFlagCompletionFunc(flag, completeFlag(argument)) // the flag is there
		}
	}
}
