package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ratelimit/ratelimit/internal/command"
)

// NewContext returns the command context.
func NewContext() *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Name the services that commands ask", RunE: unknownNoun,
		Long: `context keeps the services that commands ask, each under a name, in contexts.yaml below
ratelimit in the user's configuration directory (XDG_CONFIG_HOME). The file has no tokens:
a context names a file or an environment variable that has one.

A command asks the service of the first of these that there is: --server; --context;
--data or --config; ` + ServerVariable + `; ` + ContextVariable + `; the context in use; the
configuration in the working directory; the only service in the run directory.`,
	}
	cmd.AddCommand(newContextAdd(), newContextSet(), newContextUse(), newContextList(), newContextDelete(), newContextCurrent())
	return cmd
}

// oneContext is for a command that takes the name of a context.
func oneContext(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs the name of one context, such as production", cmd.CommandPath())
	}
	return nil
}

func newContextAdd() *cobra.Command {
	var c namedContext
	var use, replace bool
	cmd := &cobra.Command{
		Use: "add NAME --server URL", Short: "Name a service", Args: oneContext,
		Example: `  ratelimit context add production --server https://ratelimit:8082 --ca ca.pem --token-file token --use
  ratelimit context add here --server unix:///run/ratelimit/admin.sock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadContexts()
			if err != nil {
				return err
			}
			if err := addContext(f, args[0], c, replace); err != nil {
				return err
			}
			if use {
				f.Current = args[0]
			}
			return saveContexts(cmd, f, fmt.Sprintf("context %s saved", args[0]))
		},
	}
	c.flags(cmd.Flags())
	cmd.Flags().BoolVar(&use, "use", false, "make it the context in use")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a context of this name")
	return cmd
}

// flags are the fields of a context.
func (c *namedContext) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Server, "server", "", "admin listener of the service: unix:///PATH or https://HOST:PORT")
	flags.StringVarP(&c.Namespace, "namespace", "n", "", "namespace of requests that name none")
	flags.StringVar(&c.CA, "ca", "", "PEM file of the authorities that the service's certificate may be of")
	flags.StringVar(&c.Cert, "cert", "", "PEM file of the certificate to show")
	flags.StringVar(&c.Key, "key", "", "PEM file of its private key")
	flags.StringVar(&c.TokenFile, "token-file", "", "file with the token to show")
	flags.StringVar(&c.TokenEnv, "token-env", "", "environment variable with the token to show")
}

// newContextSet returns the command that changes a context.
func newContextSet() *cobra.Command {
	var given namedContext
	var use bool
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change a context, or name a service", Args: oneContext, ValidArgsFunction: completeContext,
		Long: `context set changes the fields of a context whose flags are given, or creates a context. An empty
value removes a field.`,
		Example: `  ratelimit context set production --token-file token
  ratelimit context set production --server https://ratelimit:8082 --ca ca.pem --use`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadContexts()
			if err != nil {
				return err
			}
			c, there := f.Contexts[args[0]]
			if !there && given.Server == "" {
				_, err := f.Find(args[0])
				return fmt.Errorf("%w; a new one needs --server", err)
			}
			c.change(cmd.Flags(), &given)
			if err := addContext(f, args[0], c, true); err != nil {
				return err
			}
			if use {
				f.Current = args[0]
			}
			return saveContexts(cmd, f, fmt.Sprintf("context %s saved", args[0]))
		},
	}
	given.flags(cmd.Flags())
	cmd.Flags().BoolVar(&use, "use", false, "make it the context in use")
	return cmd
}

// change sets the fields whose flags are given. A token of a file takes the place of one of a variable, and the
// other way round.
func (c *namedContext) change(flags *pflag.FlagSet, given *namedContext) {
	for name, field := range map[string]struct{ to, from *string }{
		"server": {&c.Server, &given.Server}, "namespace": {&c.Namespace, &given.Namespace}, "ca": {&c.CA, &given.CA},
		"cert": {&c.Cert, &given.Cert}, "key": {&c.Key, &given.Key},
		"token-file": {&c.TokenFile, &given.TokenFile}, "token-env": {&c.TokenEnv, &given.TokenEnv},
	} {
		if flags.Changed(name) {
			*field.to = *field.from
		}
	}
	switch {
	case given.TokenFile != "" && given.TokenEnv == "":
		c.TokenEnv = ""
	case given.TokenEnv != "" && given.TokenFile == "":
		c.TokenFile = ""
	}
}

// addContext puts a context into the file. Files are named by their whole path.
func addContext(f *contextsFile, name string, c namedContext, replace bool) error {
	for _, path := range []*string{&c.CA, &c.Cert, &c.Key, &c.TokenFile} {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = whole
	}
	if err := checkContextName(name); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("context %s: %w", name, err)
	}
	if _, there := f.Contexts[name]; there && !replace {
		return fmt.Errorf("there is a context %s already; --replace replaces it", name)
	}
	f.Contexts[name] = c
	return nil
}

func saveContexts(cmd *cobra.Command, f *contextsFile, done string) error {
	if err := f.Save(); err != nil {
		return command.Failed(err)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), done)
	return command.Failed(err)
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the one in use", Args: oneContext, ValidArgsFunction: completeContext,
		Example: "  ratelimit context use production",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadContexts()
			if err != nil {
				return err
			}
			if _, err := f.Find(args[0]); err != nil {
				return err
			}
			f.Current = args[0]
			return saveContexts(cmd, f, "commands ask "+args[0])
		},
	}
}

func newContextDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Forget a context", Args: oneContext, ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadContexts()
			if err != nil {
				return err
			}
			if _, err := f.Find(args[0]); err != nil {
				return err
			}
			delete(f.Contexts, args[0])
			if f.Current == args[0] {
				f.Current = ""
			}
			return saveContexts(cmd, f, fmt.Sprintf("context %s deleted", args[0]))
		},
	}
}

// contextRow is a context as a table and as JSON have it.
type contextRow struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	namedContext
}

func contextColumns() []command.Column[contextRow] {
	return []command.Column[contextRow]{
		{Title: "CURRENT", Value: func(r contextRow) string {
			if r.Current {
				return "*"
			}
			return " "
		}},
		{Title: "NAME", Value: func(r contextRow) string { return r.Name }},
		{Title: "SERVER", Value: func(r contextRow) string { return r.Server }},
		{Title: "NAMESPACE", Value: func(r contextRow) string { return dash(r.Namespace) }},
		{Title: "TOKEN", Value: func(r contextRow) string {
			switch {
			case r.TokenFile != "":
				return "file " + r.TokenFile
			case r.TokenEnv != "":
				return "variable " + r.TokenEnv
			}
			return "-"
		}},
		{Title: "CA", Wide: true, Value: func(r contextRow) string { return dash(r.CA) }},
		{Title: "CERT", Wide: true, Value: func(r contextRow) string { return dash(r.Cert) }},
	}
}

func newContextList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List the contexts", Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			f, err := loadContexts()
			if err != nil {
				return err
			}
			rows := make([]contextRow, 0, len(f.Contexts))
			for _, name := range f.Names() {
				rows = append(rows, contextRow{name, name == f.Current, f.Contexts[name]})
			}
			return command.WriteOne(cmd.OutOrStdout(), output, contextColumns(), rows, rows)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputTable, "table, wide, json or yaml")
	return cmd
}

func newContextCurrent() *cobra.Command {
	return &cobra.Command{
		Use: "current", Short: "Print the context in use", Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := loadContexts()
			if err != nil {
				return err
			}
			name := currentContext(f)
			if name == "" {
				return command.Failed(errors.New("no context is in use: ratelimit context use NAME"))
			}
			if _, err := f.Find(name); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), name)
			return command.Failed(err)
		},
	}
}
