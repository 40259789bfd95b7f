package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ratelimit/ratelimit/internal/nearname"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// operator has the flags that commands for a running service share.
type operator struct {
	connection
	tableFlags

	namespace string
	data      string // directory of the service to find
	config    string // file of the service to find
	output    string
	given     func(flag string) bool // whether the command line has a flag

	dryRun bool
	etag   string
	yes    bool
}

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
	if near := nearname.Closest(args[0], known); near != "" {
		return fmt.Errorf("unknown noun %q; did you mean %q?", args[0], near)
	}
	return fmt.Errorf("unknown noun %q; %s has %s", args[0], cmd.CommandPath(), strings.Join(known, ", "))
}

func (o *operator) flags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	o.connection.flags(flags, adminUsage)
	o.tableFlags.flags(flags)
	flags.StringVarP(&o.config, "config", "c", "", "configuration file of the service to ask (default: "+defaultFile+" in the working directory, if it exists)")
	flags.StringVar(&o.data, "data", "", "data directory of the service to ask")
	o.given = func(flag string) bool { return flags.Lookup(flag).Changed }
	flags.StringVarP(&o.namespace, "namespace", "n", limiter.DefaultNamespace, "namespace of the request")
	flags.StringVarP(&o.output, "output", "o", outputTable, "table, wide, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContext)                                                      // the same
	_ = cmd.RegisterFlagCompletionFunc("namespace", completeFlag(completer{o}.namespace))                               // the same
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// changeFlags are those of commands that change something.
func (o *operator) changeFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "make every check, and change nothing")
	filledVar(cmd.Flags(), &o.etag, "etag", "change only the record that has this etag, which -o wide shows")
}

// deleteFlags are those of commands that delete something.
func (o *operator) deleteFlags(cmd *cobra.Command) {
	o.changeFlags(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
}

func (o *operator) options() client.Options {
	return client.Options{DryRun: o.dryRun, IfMatch: o.etag}
}

// connect finds the service, and returns a client of it.
func (o *operator) connect(ctx context.Context) (*client.Client, error) {
	if err := checkOutput(o.output); err != nil {
		return nil, err
	}
	if o.tableFlags.given() {
		return o.onTable(ctx)
	}
	if err := o.find(ctx, o.data, o.config); err != nil {
		return nil, err
	}
	return client.New(&o.connection, o.url("")), nil
}

// onTable returns a client of a table that no service is asked for.
func (o *operator) onTable(ctx context.Context) (*client.Client, error) {
	if err := o.check(&o.connection, o.data, o.config); err != nil {
		return nil, err
	}
	s, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(s, "http://localhost"), nil
}

// inNamespace is connect for the namespace of the flags.
func (o *operator) inNamespace(ctx context.Context) (*client.Namespace, error) {
	if o.namespace == "" {
		return nil, errors.New("--namespace is empty; leave it out for " + limiter.DefaultNamespace)
	}
	c, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	if !o.given("namespace") && o.connection.namespace != "" {
		o.namespace = o.connection.namespace
	}
	return c.Namespace(o.namespace), nil
}

// refusal is the error of a command for the error of a client.
func (o *operator) refusal(err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		text := strings.Replace(err.Error(), p.Error(), p.Detail, 1)
		if p.Type == api.Unauthorized && o.tokenFile == "" && os.Getenv(tokenVariable) == "" {
			text += "; this command takes one from --token-file, or from " + tokenVariable
		}
		return failed(errors.New(text))
	}
	_, silence := errors.AsType[silenceError](err)
	_, usage := errors.AsType[usageError](err)
	if silence || usage {
		return err
	}
	return failed(err)
}

// isNotFound reports whether the service refused because there is nothing.
func isNotFound(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Type == api.NotFound
}

// confirm asks before something is deleted.
func (o *operator) confirm(cmd *cobra.Command, what string) error {
	if o.yes || o.dryRun {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) { // #nosec G115 -- a descriptor is small
		return fmt.Errorf("%s asks before it deletes %s, and there is no terminal: add --yes", cmd.CommandPath(), what)
	}
	cmd.PrintErrf("Delete %s? [y/N] ", what)
	line, _ := bufio.NewReader(in).ReadString('\n') // no answer is no
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return failed(errors.New("nothing was deleted"))
	}
	return nil
}
