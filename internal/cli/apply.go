package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// manifestFlags are those of commands that take a manifest.
type manifestFlags struct {
	operator

	files    []string
	prune    bool
	takeOver bool
}

func (f *manifestFlags) manifestFlags(cmd *cobra.Command) {
	f.flags(cmd)
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "file, directory, or - for the standard input; may be repeated")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "delete records that this manifest made and does not have any more")
	cmd.Flags().BoolVar(&f.takeOver, "take-over", false, "own records that another manifest owns")
	cmd.Flags().BoolVar(&f.isNew, "allow-new", false, allowNewUsage)
}

const manifestForm = `

A manifest has the limits of the configuration's form, and the fields of entities. It has
keys and documents as many as you like, and records as get and list print them with -o yaml:

  manifest: shop                  # its name, for --prune
  limits:
    system: {rpm: 600/minute}
    resources:
      gpt-4: {tpm: {rate: 40000/minute, burst: 60000}}
    entities:
      org/acme: {name: Acme Inc., limits: {_default_: {rpm: 6000/minute}}}
      key/k-1: {parent: org/acme, cascade: true}`

// NewApply returns the command apply.
func NewApply() *cobra.Command {
	var f manifestFlags
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Change entities and limits to those of a manifest", Args: command.NoArgs,
		Long: `apply creates and changes entities and limits of a running service until they are those of
a manifest. The manifest is checked as a whole, by this command and by the service,
before anything changes. To apply it again changes nothing; after an error, it goes on.
A record that another changes at the same time is not overwritten. With -o json each record has
before and after, and in effective the limits that decide before and after this change, with
their levels.` + manifestForm,
		Example: `  ratelimit apply -f limits.yaml
  ratelimit apply -f limits/ --prune --dry-run
  ratelimit export | ratelimit apply -f - --context staging`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.apply(cmd) },
	}
	f.manifestFlags(cmd)
	f.switchFlags(cmd)
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask before records are deleted")
	return cmd
}

// NewDiff returns the command diff.
func NewDiff() *cobra.Command {
	var f manifestFlags
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Show the changes that a manifest would make", Args: command.NoArgs,
		Long: `diff compares a manifest with a running service, and changes nothing. It exits with 0 if
apply would change nothing, 1 if it would, 2 if the manifest or the request is wrong, and 3
if no service answers.` + manifestForm,
		Example: `  ratelimit diff -f limits.yaml
  ratelimit diff -f limits/ --prune`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.diff(cmd)
			if code, quiet := command.ExitCode(err); code == command.ExitFailure && !quiet {
				return command.Misused(err)
			}
			return err
		},
	}
	f.manifestFlags(cmd)
	return cmd
}

// plan reads the manifest and compares it with the service.
func (f *manifestFlags) plan(cmd *cobra.Command) (*manifest.Plan, error) {
	if len(f.files) == 0 {
		return nil, fmt.Errorf("%s needs a manifest: -f FILE, -f DIRECTORY, or -f - for the standard input", cmd.CommandPath())
	}
	sources, err := manifest.Read(f.files, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	m, problems := manifest.Parse(sources)
	if len(problems) > 0 {
		return nil, problems
	}
	switch {
	case f.prune && m.Name == "":
		return nil, errors.New("--prune deletes records that the same manifest made, and this one has no name: add the key manifest, such as manifest: shop")
	case len(m.Records) == 0 && !f.prune:
		return nil, errors.New("the manifest has no record; with --prune it deletes those that it made")
	case m.Namespace != "" && cmd.Flags().Changed("namespace") && m.Namespace != f.namespace:
		return nil, fmt.Errorf("the manifest is of namespace %.100q, and --namespace is %.100q", m.Namespace, f.namespace)
	case m.Namespace != "":
		if err := cmd.Flags().Set("namespace", m.Namespace); err != nil { // as if it were given
			return nil, err
		}
	}
	n, err := f.inNamespace(cmd.Context())
	if err != nil {
		return nil, err
	}
	p, err := manifest.NewPlan(cmd.Context(), n, m, manifest.Options{Prune: f.prune, TakeOver: f.takeOver, AllowNew: f.isNew, Reason: f.reason})
	if err == nil {
		line := newProgress(cmd.ErrOrStderr(), "changes checked")
		err = p.Check(cmd.Context(), line.show)
		line.end()
	}
	return p, f.refusalIn(cmd.Context(), err)
}

// refusalIn is refusal, and says when a signal ended the command.
func (o *operator) refusalIn(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		if partial, ok := errors.AsType[*manifest.PartialError](err); ok {
			return command.Failed(&manifest.PartialError{Done: partial.Done, Size: partial.Size, Err: context.Cause(ctx)})
		}
		return command.Failed(context.Cause(ctx))
	}
	return o.refusal(err)
}

func (f *manifestFlags) apply(cmd *cobra.Command) error {
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	if deleted := deletions(p); len(deleted) > 0 {
		if err := f.confirm(cmd, strings.Join(deleted, ", ")); err != nil {
			return err
		}
	}
	if !f.dryRun {
		line := newProgress(cmd.ErrOrStderr(), "changes")
		err = f.refusalIn(cmd.Context(), p.Apply(cmd.Context(), line.show))
		line.end()
	}
	if p.InMemory() {
		command.NoteMemory(cmd)
	}
	return errors.Join(err, f.report(cmd.OutOrStdout(), p))
}

// maxNamed is how many records a question names.
const maxNamed = 10

// deletions names the records that a plan deletes.
func deletions(p *manifest.Plan) (names []string) {
	more := 0
	for _, c := range p.Changes {
		switch {
		case c.Result != api.Deleted:
		case len(names) == maxNamed:
			more++
		default:
			names = append(names, manifest.Subject(c.Ref))
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

// changeOutput is a change of a manifest as -o json has it.
type changeOutput struct {
	Record string     `json:"record"` // for people
	Result api.Result `json:"result"`
	Why    string     `json:"why,omitempty"`
	Before any        `json:"before,omitempty"`
	After  any        `json:"after,omitempty"`

	Effective *api.Effective `json:"effective,omitempty"`
}

type planOutput struct {
	DryRun   bool           `json:"dry_run,omitempty"`
	InMemory bool           `json:"in_memory,omitempty"` // as api.Change has it
	Changes  []changeOutput `json:"changes"`
	Left     int            `json:"left,omitempty"` // records that left the manifest and stay
}

// report writes the change of each record, made or planned.
func (f *manifestFlags) report(w io.Writer, p *manifest.Plan) error {
	out := planOutput{DryRun: f.dryRun, InMemory: p.InMemory(), Changes: []changeOutput{}, Left: p.Left}
	var text strings.Builder
	counts := make(map[api.Result]int)
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Makes() && !c.Done && !f.dryRun { // after an error
			continue
		}
		counts[c.Result]++
		out.Changes = append(out.Changes, changeOutput{manifest.Subject(c.Ref), c.Result, c.Why, c.Before(), c.After(), c.Effective})
		fmt.Fprintf(&text, "%s %s%s\n%s", manifest.Subject(c.Ref), c.Result, because(c.Why), effectiveLines(c.Effective, true))
	}
	if f.output == command.OutputJSON || f.output == command.OutputYAML {
		return command.WriteOne[any](w, f.output, nil, nil, out)
	}
	fmt.Fprintf(&text, "%s\n", summary(counts, f.dryRun))
	if p.Left > 0 {
		fmt.Fprintf(&text, "%s left the manifest; --prune deletes them\n", command.Count(p.Left, "record"))
	}
	_, err := io.WriteString(w, text.String())
	return command.Failed(err)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// summary counts the results.
func summary(counts map[api.Result]int, dryRun bool) string {
	var parts []string
	for _, r := range []api.Result{api.Created, api.Changed, api.Unchanged, api.Deleted, manifest.Kept} {
		if n := counts[r]; n > 0 || r == api.Unchanged {
			parts = append(parts, fmt.Sprintf("%d %s", n, r))
		}
	}
	text := strings.Join(parts, ", ")
	return text + command.DryText(dryRun)
}

func (f *manifestFlags) diff(cmd *cobra.Command) error {
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	if f.output == command.OutputJSON || f.output == command.OutputYAML {
		f.dryRun = true
		err = f.report(cmd.OutOrStdout(), p)
	} else {
		err = writeDiff(cmd.OutOrStdout(), p)
	}
	if err == nil && p.Size() > 0 {
		err = command.Refused()
	}
	return err
}

func writeDiff(w io.Writer, p *manifest.Plan) error {
	var text strings.Builder
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Result == api.Unchanged {
			continue
		}
		diff, err := c.Diff()
		if err != nil {
			return command.Failed(err)
		}
		fmt.Fprintf(&text, "%s %s%s\n%s", manifest.Subject(c.Ref), c.Result, because(c.Why), indent(diff))
		if lines := effectiveLines(c.Effective, true); lines != "" {
			text.WriteString("  decides:\n" + indent(lines))
		}
	}
	_, err := io.WriteString(w, text.String())
	return command.Failed(err)
}

// indent puts two spaces before each line.
func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}
