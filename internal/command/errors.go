package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1 // the command failed
	ExitUsage   = 2 // the command line, or the configuration, is wrong
	ExitSilence = 3 // no service answers
)

// codedError is an error with the exit code of the program.
type codedError struct {
	error
	code  int
	quiet bool // the output has said why
}

func (e codedError) Unwrap() error { return e.error }

// Failed marks an error that is not the command line's fault; nil stays nil.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	return codedError{error: err, code: ExitFailure}
}

// Misused marks an error of the command line.
func Misused(err error) error { return codedError{error: err, code: ExitUsage} }

// Unanswered marks an error that says that no service answers.
func Unanswered(err error) error { return codedError{error: err, code: ExitSilence} }

// Refused is the error of a command whose output has said why it fails.
func Refused() error {
	return codedError{error: errors.New("refused"), code: ExitFailure, quiet: true}
}

// IsMarked reports whether an error has an exit code of its own.
func IsMarked(err error) bool {
	_, ok := errors.AsType[codedError](err)
	return ok
}

// ExitCode returns the exit code of an error, and whether the output has said why. An error
// without a code of its own is one of the command line.
func ExitCode(err error) (code int, quiet bool) {
	if err == nil {
		return ExitOK, true
	}
	if e, ok := errors.AsType[codedError](err); ok {
		return e.code, e.quiet
	}
	return ExitUsage, false
}

// NoArgs is for a command that takes nothing but flags.
func NoArgs(cmd *cobra.Command, args []string) error {
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

// ErrInterrupted and ErrTerminated say which signal ended the program's context.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrTerminated  = errors.New("terminated")
)
