package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// filled is the value of a flag that narrows a change. It refuses an empty text: a script passes
// that where a variable is not set, and the change would be a wider one.
type filled struct{ to *string }

// filledVar adds a flag that takes a text, and no empty one.
func filledVar(flags *pflag.FlagSet, to *string, name, usage string) {
	flags.Var(filled{to}, name, usage)
}

// Set implements pflag.Value.
func (f filled) Set(text string) error {
	if text == "" {
		return errors.New("it is empty; leave it out, or give it a value")
	}
	*f.to = text
	return nil
}

// String implements pflag.Value.
func (f filled) String() string {
	if f.to == nil {
		return ""
	}
	return *f.to
}

// Type implements pflag.Value.
func (filled) Type() string { return "string" }
