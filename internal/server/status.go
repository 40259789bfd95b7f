package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// readTime bounds the reads of limits for a status.
const readTime = 2 * time.Second

// present sets the members of a status that change.
func (s *Service) present(ctx context.Context, out *api.Status) {
	now, state, all := s.Clocks.Call(), s.health.State(), s.fleet.State(ctx)
	here := &all.Replicas[0] // the one that answers
	out.Started, out.UptimeSeconds = s.activity.since.UTC(), int64(now.Sub(s.activity.since)/time.Second)
	out.Ready, out.Reason, out.Configuration, out.Files = &here.Ready, here.Reason, &here.Configuration, absolute(state.Config.Files)
	out.StoreState, out.Leases, out.MemoryBytes = here.Store, here.Leases, here.MemoryBytes
	out.Replicas, out.Aggregator = all.Replicas, all.Aggregator
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	undefined := s.activity.undefined.list(ctx, now, func(ctx context.Context, namespace, entity, resource string) ([]limiter.EffectiveLimit, error) {
		return s.limiter.Effective(ctx, now, namespace, entity, resource)
	})
	for _, l := range undefined {
		out.LimitsNotDefined = append(out.LimitsNotDefined, l.name)
	}
	out.Problems = append(out.Problems, stateProblems(&state, s.check)...)
	out.Problems = append(out.Problems, restartProblems(s.waiting.Load())...)
	out.Problems = append(out.Problems, namespaceProblems(ctx, s.Store, s.InForce.Load().Rules)...)
	out.Problems = append(out.Problems, limitProblems(undefined)...)
	out.Problems = append(out.Problems, ruleProblems(s.RLS.Decided(), s.RLS.DeniedBy())...)
	out.Problems = append(out.Problems, s.problems()...)
	out.Problems = append(out.Problems, fleetProblems(all)...)
}

// absolute returns the names of files as any working directory has them. One that is built in is no file.
func absolute(files []string) []string {
	all := slices.Clone(files)
	for i, name := range all {
		if name != config.ShippedName {
			all[i] = command.Absolute(name)
		}
	}
	return all
}

// stateProblems returns the problems of the state at /readyz. check is the command that shows the mistakes of files.
func stateProblems(state *admin.State, check string) (all []api.StatusProblem) {
	if !state.Ready {
		all = append(all, api.StatusProblem{
			What: "the service is not ready: " + cmp.Or(state.Reason, "it has just started"),
			Do:   "read the last lines of its log", Section: api.SectionReplica,
		})
	}
	if st := state.Store; st != nil && st.State != dynamo.Available.String() {
		what := fmt.Sprintf("the store %s is %s: the policy %s decides", st.Type, st.State, st.Policy)
		if st.RulesWithAnother > 0 {
			what += fmt.Sprintf(", and %s with a policy of their own", command.Count(st.RulesWithAnother, "rule"))
		}
		all = append(all, api.StatusProblem{What: what, Since: st.Since, Do: "compare /readyz of all replicas, and follow docs/operations.md, Store outage", Section: api.SectionOutage})
	}
	if c := state.Config; c.Error != "" {
		p := api.StatusProblem{
			What: "newer files of the configuration are refused, and the one before stays in force: " + c.Error, Since: c.ErrorAt.UTC(),
			Do: check + " shows every mistake", Section: api.SectionReplica,
		}
		if c.ErrorOf == admin.FromControlPlane {
			p.What, p.Do = "newer rules of the control plane are refused, and those before stay in force: "+c.Error, "correct the rules at the control plane"
		}
		all = append(all, p)
	}
	return all
}

// restartProblems returns the problem of settings that take effect at the next start.
func restartProblems(settings *yamlcfg.Problems) []api.StatusProblem {
	if settings == nil || len(*settings) == 0 {
		return nil
	}
	names := make([]string, 0, len(*settings))
	for _, p := range *settings {
		names = append(names, cmp.Or(p.Path, p.File))
	}
	return []api.StatusProblem{{
		What: "the files have other settings than the service was started with: " + strings.Join(names, ", "),
		Do:   "restart the service, or take the change back", Section: api.SectionReplica,
	}}
}

// maxClosed bounds the namespaces whose state is read for a status.
const maxClosed = 100

// namespaceProblems returns the problems of namespaces that rules take from, and that deny each request, as far as
// their state can be read.
func namespaceProblems(ctx context.Context, of limiter.Store, rules *descriptor.Rules) (all []api.StatusProblem) {
	store, ok := of.(limiter.Control)
	if !ok {
		return nil
	}
	var names []string
	for _, d := range rules.Domains() {
		names = append(names, d.Namespace())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names[:min(len(names), maxClosed)] {
		ns, err := store.GetNamespace(ctx, name)
		switch {
		case errors.Is(err, limiter.ErrNotFound):
			continue
		case err != nil: // the store does not answer: nor for the next
			return all
		}
		what, next := command.ClosedNamespace(&api.Namespace{Name: api.Name(name), State: api.NamespaceState(ns.State.String()), Disabled: ns.Disabled})
		if what != "" {
			all = append(all, api.StatusProblem{What: what, Since: ns.Since.UTC(), Do: next, Section: api.SectionDenial})
		}
	}
	return all
}

func limitProblems(undefined []undefinedLimit) (all []api.StatusProblem) {
	for _, l := range undefined {
		all = append(all, api.StatusProblem{
			What:  fmt.Sprintf("requests consume the limit %s, which no level defines: they are denied, the last one of entity %s", l.name, api.Name(l.entity)),
			Since: l.since.UTC(),
			Do:    "correct the name in the rule, or define the limit: ratelimit set limits --system " + l.name + "=RATE", Section: api.SectionDenial,
		})
	}
	return all
}

// ruleProblems returns the problem of a service whose rules matched none of its descriptors. It takes the numbers
// of descriptors by result, and of denied ones by reason.
func ruleProblems(results, denials map[string]int64) []api.StatusProblem {
	var all int64
	for _, n := range results {
		all += n
	}
	denied := denials[api.Unmatched]
	if all == 0 || results[api.Unmatched]+denied < all {
		return nil
	}
	return []api.StatusProblem{{
		What: fmt.Sprintf("no rule matched a descriptor since the start: %d came, and %d of them were denied", all, denied),
		Do:   "the gateway sends another domain or other keys: the log names them; compare them with the rules by ratelimit explain --live DOMAIN KEY=VALUE...", Section: api.SectionEnforced,
	}}
}

// problems returns the problems of the clock of a table, and of the buckets of an embedded store.
func (b *backend) problems() (all []api.StatusProblem) {
	if b.clock != nil && !b.clock.State().Trusted {
		all = append(all, api.StatusProblem{What: "the clock of this machine cannot be trusted: buckets are not refilled", Do: "set the clock, and have NTP keep it right", Section: api.SectionReplica})
	}
	if store, ok := b.Store.(*embedded.Store); ok {
		if shared := store.Overflow().Buckets; shared > 0 {
			all = append(all, api.StatusProblem{
				What: "the store is full: several keys share " + command.Count(int(shared), "bucket"),
				Do:   "raise store.embedded.max_buckets; a rule whose key clients can invent needs another key", Section: api.SectionEnforced,
			})
		}
	}
	return all
}
