package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// ruleLimits says which rules have limits of their own that come before those of a level, under the names
// that counts accepts: each for a resource. An entity or a resource of "" is each one.
func ruleLimits(ctx context.Context, n *api.NamespaceClient, of api.LimitsOf, counts func(name string) bool) ([]string, error) {
	var found []string
	for l, err := range api.Each(func(p api.Page) (*api.List[api.FileLimits], error) { return n.FileLimits(ctx, p) }) {
		switch {
		case isUnsupported(err):
			return nil, nil
		case err != nil:
			return nil, err
		case l.Place != api.PlaceRule || l.Shadow || of.Entity != "" && !descriptor.Covers(string(*l.Entity), string(of.Entity)):
			continue
		case of.Resource != "" && of.Resource != limiter.DefaultResource && !descriptor.Covers(string(*l.Resource), string(of.Resource)):
			continue
		}
		var limits []string
		for _, name := range slices.Sorted(maps.Keys(l.Limits)) {
			if counts(name) {
				limits = append(limits, name+" "+money.Amounts(name, l.Limits[name].String()))
			}
		}
		if len(limits) > 0 {
			found = append(found, fmt.Sprintf("for resource %s the rule %s of domain %s has %s of its own: only limits of an entity for that resource come before", *l.Resource, l.Name, l.Domain, strings.Join(limits, ", ")))
		}
	}
	return found, nil
}

// maxRuleNotes is the most rules that notes name.
const maxRuleNotes = 10

// noteRules says on the standard error which rules have limits of their own that come before those of a level.
func noteRules(cmd *cobra.Command, n *api.NamespaceClient, of api.LimitsOf, counts func(name string) bool) error {
	notes, err := ruleLimits(cmd.Context(), n, of, counts)
	for _, note := range notes[:min(len(notes), maxRuleNotes)] {
		cmd.PrintErrln("note: " + note)
	}
	if more := len(notes) - maxRuleNotes; more > 0 {
		cmd.PrintErrf("note: and %d more rules have such limits\n", more)
	}
	return err
}
