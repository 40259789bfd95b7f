package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// quietSeconds is how long after its start a replica that no gateway asks is no problem.
const quietSeconds = 600

// finding is the result of one step of the doctor.
type finding struct {
	OK      bool   `json:"ok"`
	Section string `json:"section"` // of docs/operations.md, its heading
	Found   string `json:"found"`
	Next    string `json:"next,omitempty"` // the next step, also of one that is well
}

// diagnosis has the findings in order.
type diagnosis struct {
	Findings []finding `json:"findings"`
	Wrong    int       `json:"wrong"` // findings that need a person

	outage    bool           // the status has one
	decisions *api.Decisions // nil = the service does not count them
}

func (d *diagnosis) add(f finding) {
	d.Findings = append(d.Findings, f)
	if !f.OK {
		d.Wrong++
	}
}

// well adds a finding without a problem.
func (d *diagnosis) well(section, found, next string) {
	d.add(finding{OK: true, Section: section, Found: found, Next: next})
}

// wrong adds a problem.
func (d *diagnosis) wrong(section, found, next string) {
	d.add(finding{Section: section, Found: found, Next: next})
}

// says reports whether a problem has the next step.
func (d *diagnosis) says(next string) bool {
	return slices.ContainsFunc(d.Findings, func(f finding) bool { return !f.OK && f.Next == next })
}

// doctorFlags are those of the command doctor.
type doctorFlags struct {
	operator

	entity, resource string
}

// NewDoctor returns the command doctor.
func NewDoctor() *cobra.Command {
	f := new(doctorFlags)
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what is wrong with a service, and the next step", Args: command.NoArgs,
		Long: `doctor goes through the sections of docs/operations.md, in their order, against a running
service. Each line says whether all is well, or what is wrong, with the next step. With
--entity it says first why that entity is denied, or not limited.

Exit codes: 0 all is well; 1 something is wrong; 3 no service answers.`,
		Example: `  ratelimit doctor
  ratelimit doctor --entity key/k-123 --resource gpt-4
  ratelimit doctor -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.resource != "" && f.entity == "":
				return errors.New("--resource is of an entity: give --entity too")
			case f.tableFlags.given():
				return errors.New("doctor asks a running service, and a table is none: leave out --store and --table")
			}
			n, err := f.quietly(cmd.Context())
			if err != nil {
				return err
			}
			d, err := f.examine(cmd.Context(), n)
			if err != nil {
				return f.refusal(err)
			}
			return f.write(cmd, d)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.entity, "entity", "", "ID of an entity that is denied, or not limited")
	cmd.Flags().StringVar(&f.resource, "resource", "", "only for this resource")
	completer{&f.operator}.flags(cmd)
	return cmd
}

func (f *doctorFlags) write(cmd *cobra.Command, d *diagnosis) error {
	var err error
	if f.output == command.OutputJSON || f.output == command.OutputYAML {
		err = command.WriteOne[any](cmd.OutOrStdout(), f.output, nil, nil, d)
	} else {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "server: %s\n%s", f.answered(), d)
		err = command.Failed(err)
	}
	if err == nil && d.Wrong > 0 {
		return command.Refused()
	}
	return err
}

// String is the diagnosis for people.
func (d *diagnosis) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	for _, f := range d.Findings {
		state := "ok"
		if !f.OK {
			state = "wrong"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", state, f.Section, f.Found) // a builder takes everything
		if f.Next != "" {
			_, _ = fmt.Fprintf(w, "\t\tnext: %s\n", f.Next)
		}
	}
	_ = w.Flush()
	return text.String()
}

// examine goes through the sections in the order of docs/operations.md.
func (f *doctorFlags) examine(ctx context.Context, n *api.NamespaceClient) (*diagnosis, error) {
	d := new(diagnosis)
	status, err := n.Service.Status(ctx)
	if err != nil {
		return nil, err
	}
	if d.decisions, err = n.Service.Decisions(ctx); err != nil && !isUnsupported(err) {
		return nil, err
	}
	d.outage = slices.ContainsFunc(status.Problems, func(p api.StatusProblem) bool { return p.Section == api.SectionOutage })
	if f.entity != "" {
		p := patient{n: n, d: d, entity: api.Name(f.entity), resource: api.Name(f.resource)}
		if err := p.examine(ctx, status.Can); err != nil {
			return nil, err
		}
	}
	for _, section := range []func(context.Context, *api.NamespaceClient, *api.Status, *diagnosis) error{denialSection, enforcedSection, otherSections} {
		if err := section(ctx, n, status, d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// problems adds the problems of a section, and reports whether there is one.
func (d *diagnosis) problems(s *api.Status, section string) bool {
	found := false
	for _, p := range s.Problems {
		if p.Section != section {
			continue
		}
		found = true
		if !d.says(p.Do) {
			d.wrong(section, problemText(&p), p.Do)
		}
	}
	return found
}

// denialSection looks for denials that are not meant.
func denialSection(ctx context.Context, n *api.NamespaceClient, s *api.Status, d *diagnosis) error {
	if !d.problems(s, api.SectionDenial) {
		d.well(api.SectionDenial, "each limit that requests consume is defined", "")
	}
	for _, step := range []func(context.Context, *api.NamespaceClient, *diagnosis) error{namespaceStep, disabledStep} {
		if err := step(ctx, n, d); err != nil {
			return err
		}
	}
	reasonsStep(d)
	top, err := n.Service.Top(ctx, api.TopOf{By: api.TopDenied, Size: 1})
	switch {
	case isUnsupported(err):
		return nil
	case err != nil:
		return err
	case len(top.Items) == 0:
		d.well(api.SectionDenial, "no limit denied a request of this replica in the last minute", "")
		return nil
	}
	r := top.Items[0]
	d.well(api.SectionDenial, fmt.Sprintf("most denied in the last minute: entity %s for resource %s, limit %s, %s", r.Entity, r.Resource, r.Limit, command.Count(int(r.Decisions), "decision")),
		fmt.Sprintf("is it meant? ratelimit doctor --entity %s --resource %s", r.Entity, r.Resource))
	return nil
}

// reasonsStep looks for denials by something else than a limit, which no top has.
func reasonsStep(d *diagnosis) {
	if d.decisions == nil {
		return
	}
	var found []string
	for _, reason := range slices.Sorted(maps.Keys(d.decisions.Denials)) {
		if reason != limiter.ReasonExhausted.String() && reason != api.Unmatched { // another section has the unmatched ones
			found = append(found, fmt.Sprintf("%d %s", d.decisions.Denials[reason], reason))
		}
	}
	if len(found) > 0 {
		d.well(api.SectionDenial, "denied since "+command.Moment(d.decisions.Since)+" by something else than a used-up limit: "+strings.Join(found, ", "), "is it meant? ratelimit explain --live DOMAIN KEY=VALUE...")
	}
}

// listNamespacesCommand is the next step where a namespace is unknown.
const listNamespacesCommand = "ratelimit list namespaces"

// namespaceStep looks whether the namespace denies each of its requests.
func namespaceStep(ctx context.Context, n *api.NamespaceClient, d *diagnosis) error {
	ns, err := n.Get(ctx)
	switch {
	case isUnsupported(err):
		return nil
	case isNotFound(err):
		if p, ok := errors.AsType[*api.Problem](err); ok && !d.says(listNamespacesCommand) {
			d.wrong(api.SectionEnforced, p.Detail, listNamespacesCommand)
		}
		return nil
	case err != nil:
		return unreadable(d, err)
	}
	what, next := command.ClosedNamespace(ns)
	if what != "" && !d.says(next) { // the status may have it
		d.wrong(api.SectionDenial, what, next)
	}
	return nil
}

// disabledStep looks for subjects that are disabled, beside the namespace.
func disabledStep(ctx context.Context, n *api.NamespaceClient, d *diagnosis) error {
	list, err := n.ListDisabled(ctx, api.Page{Size: 1000})
	switch {
	case isUnsupported(err):
		return nil
	case err != nil:
		return unreadable(d, err)
	}
	some := slices.DeleteFunc(list.Items, func(one api.Disabled) bool { return one.Level == api.LevelNamespace })
	switch {
	case len(some) > 0 || list.Next != "":
		more := ""
		if list.Next != "" {
			more = " or more"
		}
		d.well(api.SectionDenial, fmt.Sprintf("%s%s disabled", command.Count(len(some), "subject"), more), "is it meant? ratelimit list disabled")
	case len(list.Items) == 0:
		d.well(api.SectionDenial, "nothing is disabled", "")
	}
	return nil
}

// unreadable adds that the store does not answer, unless the status says so, or returns another error.
func unreadable(d *diagnosis, err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok && (p.Type == api.Unavailable || p.Type == api.Uncertain) {
		if !d.outage { // else the section says so
			d.wrong(api.SectionOutage, "records cannot be read: "+p.Detail, "ratelimit status")
		}
		return nil
	}
	return err
}

// enforcedSection looks for requests that are not limited.
func enforcedSection(_ context.Context, _ *api.NamespaceClient, s *api.Status, d *diagnosis) error {
	if !d.problems(s, api.SectionEnforced) {
		d.well(api.SectionEnforced, "each key has a bucket of its own", "")
	}
	decisions := d.decisions
	if decisions == nil {
		return nil
	}
	var all int64
	for _, count := range decisions.Results {
		all += count
	}
	unmatched, denied := decisions.Results[api.Unmatched], decisions.Denials[api.Unmatched]
	unmatched += denied
	switch {
	case all == 0 && s.UptimeSeconds < quietSeconds:
		d.well(api.SectionEnforced, "no gateway has asked this replica yet", "")
	case all == 0:
		d.wrong(api.SectionEnforced, "no gateway has asked this replica since "+command.Moment(decisions.Since), "the gateway's filter, its cluster, a missing header")
	case unmatched == all: // a problem of the status
	case unmatched > 0:
		d.well(api.SectionEnforced, fmt.Sprintf("%d of %d descriptors since %s met no rule, and %d of them were denied", unmatched, all, command.Moment(decisions.Since), denied), "is it meant? The log names their domains and keys; ratelimit explain --live DOMAIN KEY=VALUE...")
	default:
		d.well(api.SectionEnforced, "each descriptor met a rule", "")
	}
	return nil
}

// otherSections looks at the store and at the replica.
func otherSections(_ context.Context, _ *api.NamespaceClient, s *api.Status, d *diagnosis) error {
	if s.Aggregator != nil && !d.problems(s, api.SectionUsage) {
		d.well(api.SectionUsage, "aggregator: "+s.Aggregator.Text, "")
	}
	if !d.problems(s, api.SectionOutage) {
		found := "the store is in the process"
		if s.StoreState != nil {
			found = "the store is " + s.StoreState.State
		}
		d.well(api.SectionOutage, found, "")
	}
	if !d.problems(s, api.SectionReplica) {
		found := "this replica is ready, for " + (time.Duration(s.UptimeSeconds) * time.Second).String()
		if c := s.Configuration; c != nil {
			found += ", and the newest files are in force, since " + command.Moment(c.LoadedAt)
		}
		d.well(api.SectionReplica, found, "")
	}
	return nil
}
