package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the command failed
	exitUsage   = 2 // the command line, or the configuration, is wrong
	exitSilence = 3 // no service answers
)

// run runs the program with its arguments and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // cobra carries the context to the commands
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ctx, end := withEnd(ctx)
	defer end()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if silent, ok := errors.AsType[exitError](err); ok {
		return silent.code
	}
	if problems, ok := errors.AsType[config.Problems](err); ok {
		root.PrintErrln(problems)
		return exitUsage
	}
	root.PrintErrln("ratelimit:", err)
	if _, ok := errors.AsType[silenceError](err); ok {
		return exitSilence
	}
	if _, ok := errors.AsType[failureError](err); ok {
		return exitFailure
	}
	return exitUsage
}

// silenceError says that no service answers.
type silenceError struct{ error }

func (e silenceError) Unwrap() error { return e.error }

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError ends the program with a code; the output has said why.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// failureError is an error that is not the command line's fault.
type failureError struct{ error }

func (e failureError) Unwrap() error { return e.error }

func failed(err error) error {
	if err == nil {
		return nil
	}
	return failureError{err}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ratelimit",
		Short: "A rate limit service for Envoy: exact token buckets, one file, one node or a fleet",
		Long: `ratelimit answers Envoy's Rate Limit Service protocol (RLS v3). Rules in one YAML
file turn descriptors into limits of entities; token buckets decide. They are in the
program itself, or in a DynamoDB table that a fleet of them shares.

  ratelimit serve --config F                 start the service
  ratelimit serve --demo                     start it with example rules, to try it
  ratelimit aggregate --config F             write the usage of a fleet into its table
  ratelimit check --config F                 is the file right?
  ratelimit explain DOMAIN KEY=VALUE...      which rule, which limits, and why
  ratelimit test cases.yaml                  do calls get the answers that you expect?
  ratelimit get|set|delete|list NOUN         entities, limits and audit of a running service
  ratelimit apply|diff -f MANIFEST           entities and limits from files
  ratelimit top                              which entities are limited now
  ratelimit disable|enable NOUN              deny requests of an entity, a resource or a namespace
  ratelimit create|delete|recover|purge namespace NAME
                                             end a namespace, and undo that until it is purged
  ratelimit backup                           copy the data of a running service (--data)

Exit codes: 0 done; 1 refused or failed; 2 wrong command line or configuration; 3 no
service answers.`,
		Version:       programVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.SetVersionTemplate(versionLine())
	addGroup(root, "Run a service:", newServe(), newAggregate(), newCheck(), newExplain(), newTest(), newToken())
	addGroup(root, "Operate a running service:", newGet(), newSet(), newDelete(), newCreate(), newRecover(), newPurge(), newList(), newApply(), newDiff(), newExport(), newCapacity(), newReset(), newTopUp(), newTakeOut(), newDisable(), newEnable(), newTop(), newStatus(), newBench(), newContext(), newBackup(), newRestore(), newMigrate())
	addGroup(root, "Install on AWS:", newStack(), newCost())
	root.AddCommand(newVersion())
	completeFiles(root)
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

// noArgs is for a command that takes nothing but flags.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.Flags().Lookup("entity") != nil:
		return fmt.Errorf("%s takes flags only, not %q; an entity is named with --entity", cmd.CommandPath(), args[0])
	case cmd.Flags().Lookup("config") != nil:
		return fmt.Errorf("%s takes flags only, not %q; a configuration file is named with --config", cmd.CommandPath(), args[0])
	default:
		return fmt.Errorf("%s takes flags only, not %q", cmd.CommandPath(), args[0])
	}
}
