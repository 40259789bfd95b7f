package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/environment"
	"github.com/ratelimit/ratelimit/internal/server"
)

// run runs the program with its arguments and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // cobra carries the context to the commands
	if serve := implied(root, args); serve != nil {
		serve.FParseErrWhitelist.UnknownFlags = true // that service ignores them
		for _, arg := range args {
			if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); strings.HasPrefix(arg, "-") && serve.Flags().Lookup(name) == nil {
				_, _ = fmt.Fprintf(stderr, "ratelimit: warning: the flag %s has no effect\n", name)
			}
		}
		args = append([]string{serve.Name()}, args...)
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ctx, end := command.WithEnd(ctx)
	defer end()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return command.ExitOK
	}
	if problems, ok := errors.AsType[yamlcfg.Problems](err); ok {
		root.PrintErrln(problems)
		return command.ExitUsage
	}
	code, quiet := command.ExitCode(err)
	if !quiet {
		root.PrintErrln("ratelimit:", err)
	}
	return code
}

// implied returns the command serve where no command is given and the environment is that of envoyproxy/ratelimit;
// else nil.
func implied(root *cobra.Command, args []string) *cobra.Command {
	help := []string{"-h", "--help", "--version", "-v"}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") || slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(help, arg) }) || !environment.Start(os.LookupEnv, false) {
		return nil
	}
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		return nil
	}
	return serve
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ratelimit",
		Short: "A rate limit service for Envoy: exact token buckets, one file, one node or a fleet",
		Long: `ratelimit answers Envoy's Rate Limit Service protocol (RLS v3). Rules in one YAML
file turn descriptors into limits of entities; token buckets decide. They are in the
program itself, or in a table of DynamoDB, Valkey or Redis that a fleet of them shares.

  ratelimit serve --config F                 start the service
  ratelimit serve --demo                     start it with example rules, to try it
  ratelimit aggregate --config F             write the usage of a fleet into its table
  ratelimit check --config F                 is the file right?
  ratelimit explain DOMAIN KEY=VALUE...      which rule, which limits, and why
  ratelimit test cases.yaml                  do calls get the answers that you expect?
  ratelimit get|set|delete|list NOUN         entities, limits and audit of a running service
  ratelimit apply|diff -f MANIFEST           entities and limits from files
  ratelimit status, ratelimit doctor         what needs a person, and the next step
  ratelimit top                              which entities are limited now
  ratelimit console                          open the console in a browser
  ratelimit disable|enable NOUN              deny requests of an entity, a resource or a namespace
  ratelimit create|delete|recover|purge namespace NAME
                                             end a namespace, and undo that until it is purged
  ratelimit backup                           copy the data of a running service (--data)

Exit codes: 0 done; 1 refused or failed; 2 wrong command line or configuration; 3 no
service answers.`,
		Version:       command.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.SetVersionTemplate(command.VersionLine())
	addGroup(root, "Run a service:", server.NewCommand(), server.NewLimitador(), awscmd.NewAggregate(), cli.NewCheck(), cli.NewConvert(), cli.NewExplain(), cli.NewTest(), cli.NewToken(), cli.NewSchema())
	addGroup(root, "Operate a running service:", cli.NewGet(), cli.NewSet(), cli.NewDelete(), cli.NewCreate(), cli.NewRecover(), cli.NewPurge(), cli.NewList(), cli.NewApply(), cli.NewDiff(), cli.NewExport(), cli.NewCapacity(), cli.NewReset(), cli.NewTopUp(), cli.NewTakeOut(), cli.NewDisable(), cli.NewEnable(), cli.NewTop(), cli.NewConsole(), cli.NewStatus(), cli.NewDoctor(), cli.NewBench(), cli.NewContext(), cli.NewBackup(), cli.NewRestore(), awscmd.NewMigrate())
	addGroup(root, "Install on AWS:", awscmd.NewStack(), awscmd.NewCost())
	addGroup(root, "Install on Valkey or Redis:", cli.NewValkey())
	root.AddCommand(command.NewVersion())
	cli.CompleteFiles(root)
	return root
}

// addGroup adds commands that the help shows under a title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}
