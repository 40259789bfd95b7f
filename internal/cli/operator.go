package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// operator has the flags that commands for a running service share.
type operator struct {
	connection
	tableFlags
	changing

	namespace string
	data      string // directory of the service to find
	config    string // file of the service to find
	output    string
	given     func(flag string) bool // whether the command line has a flag
	notes     func() io.Writer       // the standard error
}

// connect finds the service, and returns a client of it.
func (o *operator) connect(ctx context.Context) (*api.Client, error) {
	if err := command.CheckOutput(o.output); err != nil {
		return nil, err
	}
	if o.tableFlags.given() {
		return o.onTable(ctx)
	}
	if err := o.find(ctx, o.data, o.config); err != nil {
		return nil, err
	}
	return api.NewClient(&o.connection, o.url("")), nil
}

// onTable returns a client of a table that no service is asked for.
func (o *operator) onTable(ctx context.Context) (*api.Client, error) {
	if err := o.check(&o.connection, o.data, o.config); err != nil {
		return nil, err
	}
	s, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	return api.NewClient(s, "http://localhost"), nil
}

// inNamespace is connect for the namespace of the flags. It notes where a command reads one that was never in use: all
// is empty there. Changes are refused there by the service.
func (o *operator) inNamespace(ctx context.Context) (*api.NamespaceClient, error) {
	n, err := o.quietly(ctx)
	if err != nil || o.changes {
		return n, err
	}
	return n, o.noteUnknown(ctx, n)
}

// noteUnknown notes that a namespace was never in use.
func (o *operator) noteUnknown(ctx context.Context, n *api.NamespaceClient) error {
	if o.namespace == limiter.DefaultNamespace {
		return nil
	}
	if _, err := n.Get(ctx); isNotFound(err) {
		_, err = fmt.Fprintln(o.notes(), "note:", o.refusal(err))
		return command.Failed(err)
	}
	return nil // the command itself meets any other error
}

// noteNowhere notes that nothing was found because the entity or the resource is nowhere.
func (o *operator) noteNowhere(ctx context.Context, n *api.NamespaceClient, entity, resource api.Name) {
	for _, of := range []api.Subject{{Entity: entity}, {Resource: resource}} {
		if of == (api.Subject{}) {
			continue
		}
		if state, err := n.Disabled(ctx, of); err == nil && state.Note != "" { // the command has its answer already
			_, _ = fmt.Fprintln(o.notes(), "note:", state.Note) // the same
		}
	}
}

// quietly is inNamespace without a note.
func (o *operator) quietly(ctx context.Context) (*api.NamespaceClient, error) {
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

// here is the run of a command in the namespace of the flags.
func (o *operator) here(run func(cmd *cobra.Command, args []string, n *api.NamespaceClient) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		n, err := o.inNamespace(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd, args, n)
	}
}

// refusal is the error of a command for the error of a client.
func (o *operator) refusal(err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		text := strings.Replace(err.Error(), p.Error(), p.Detail, 1)
		if p.Type == api.Unauthorized && o.tokenFile == "" && os.Getenv(TokenVariable) == "" {
			text += "; this command takes one from --token-file, or from " + TokenVariable
		}
		return command.Failed(errors.New(text))
	}
	if command.IsMarked(err) {
		return err
	}
	return command.Failed(err)
}

// isUnsupported reports whether the service has no such thing.
func isUnsupported(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Type == api.Unsupported
}

// isNotFound reports whether the service refused because there is nothing.
func isNotFound(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Type == api.NotFound
}

// confirmed is inNamespace for a command that deletes something, and asks first.
func (o *operator) confirmed(cmd *cobra.Command, what string) (*api.NamespaceClient, error) {
	if err := o.confirm(cmd, what); err != nil {
		return nil, err
	}
	return o.inNamespace(cmd.Context())
}

// named returns the namespace that a command takes as its argument.
func (o *operator) named(cmd *cobra.Command, name string) (*api.NamespaceClient, error) {
	if cmd.Flags().Changed("namespace") {
		return nil, fmt.Errorf("%s takes the namespace as its argument: leave --namespace out", cmd.CommandPath())
	}
	c, err := o.connect(cmd.Context())
	if err != nil {
		return nil, err
	}
	return c.Namespace(name), nil
}

// readOne checks a selection, and reads the record that it selects.
func readOne[S, V any](ctx context.Context, o *operator, selection func() (S, error), read func(*api.NamespaceClient, context.Context, S) (*V, error)) (*V, error) {
	of, err := selection()
	if err != nil {
		return nil, err
	}
	n, err := o.inNamespace(ctx)
	if err != nil {
		return nil, err
	}
	v, err := read(n, ctx, of)
	if err != nil {
		return nil, o.refusal(err)
	}
	return v, nil
}

// show writes a record that was read, or returns the error of the read.
func show[V any](cmd *cobra.Command, o *operator, columns []command.Column[V], v *V, err error) error {
	if err != nil {
		return o.refusal(err)
	}
	return command.WriteOne(cmd.OutOrStdout(), o.output, columns, []V{*v}, v)
}

// report describes a change that was made, or returns the error of the change.
func report[V any](cmd *cobra.Command, o *operator, subject string, change *api.Change[V], err error) error {
	if err != nil {
		return o.refusal(err)
	}
	return command.Report(cmd, o.output, subject+" "+string(change.Result), change)
}
