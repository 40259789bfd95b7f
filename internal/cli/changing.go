package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// changing has the flags of commands that change something.
type changing struct {
	dryRun bool
	reason string
	isNew  bool // names may be new
	etag   string
	yes    bool

	changes bool // the command is one of them
}

// changeFlags are those of commands that change something.
func (c *changing) changeFlags(cmd *cobra.Command) {
	c.switchFlags(cmd)
	filledVar(cmd.Flags(), &c.etag, "etag", "change only the record that has this etag, which -o wide shows")
}

// allowNewUsage is that of --allow-new.
const allowNewUsage = "allow names that are new: of a namespace, a parent, a resource, a limit, a plan; without it one that is probably misspelled is refused"

// deleteFlags are those of commands that delete something.
func (c *changing) deleteFlags(cmd *cobra.Command) {
	c.changeFlags(cmd)
	c.yesFlag(cmd)
}

func (c *changing) options() api.ClientOptions {
	return api.ClientOptions{DryRun: c.dryRun, Reason: c.reason, IfMatch: c.etag, AllowNew: c.isNew}
}

// flipFlags are those of disable and enable.
func (c *changing) flipFlags(cmd *cobra.Command) {
	c.switchFlags(cmd)
	cmd.Flags().BoolVar(&c.isNew, "allow-new", false, "allow a subject that is neither stored nor configured nor in use, and a namespace that never was")
}

func (c *changing) switchFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "make every check, and change nothing")
	c.reasonFlag(cmd)
}

// reasonFlag is for commands whose changes are in the audit.
func (c *changing) reasonFlag(cmd *cobra.Command) {
	c.changes = true
	filledVar(cmd.Flags(), &c.reason, "reason", "TEXT for the audit that says why, such as \"abuse, ticket 4711\"")
}

func (c *changing) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
}

// confirm asks before something is deleted. The end of the context is an answer, too.
func (c *changing) confirm(cmd *cobra.Command, what string) error {
	if c.yes || c.dryRun {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) { // #nosec G115 -- a descriptor is small
		return fmt.Errorf("%s asks before it deletes %s, and there is no terminal: add --yes", cmd.CommandPath(), what)
	}
	cmd.PrintErrf("Delete %s? [y/N] ", what)
	answer, err := command.Answer(cmd.Context(), in)
	if err != nil {
		cmd.PrintErrln()
		return command.Failed(fmt.Errorf("%w: nothing was deleted", err))
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return command.Failed(errors.New("nothing was deleted"))
	}
	return nil
}
