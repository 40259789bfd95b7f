package descriptor

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Use is the effect of a call on the limits of a limitador file.
type Use uint8

// The uses.
const (
	UseTake    Use = iota // takes the hits of all limits that apply, or of none
	UseCheck              // takes nothing, and is denied where a limit has no room for one hit
	UseReport             // charges the hits to all limits, also past them
	UseReserve            // takes the hits as a reservation; of 0 hits nothing, and only a limit in debt denies
)

// ConditionFailed is the Outcome.Why of a limit whose condition or variable cannot be evaluated for the call.
const ConditionFailed = "condition_failed"

const (
	// hitsLimit is the name of limits that have none in a limitador file.
	hitsLimit = "hits"
	// wholeEntity is the entity of limits without variables.
	wholeEntity = "all"
)

// callLimits are the limits of a limitador file in one domain. Each looks at the whole call.
type callLimits struct {
	byEntry map[Entry][]*Rule // of limits with a condition that is the value of an entry of the first descriptor
	rest    []*Rule
}

// when says to which calls a limit applies, and to which of its buckets.
type when struct {
	spec       CallLimitSpec
	conditions []*celExpression
	variables  []*celExpression
	blocked    bool // it admits nothing
}

// candidates appends the limits that may apply to a call, in the order of the file.
func (l *callLimits) candidates(call *Call, rules []*Rule) []*Rule {
	rules = append(rules, l.rest...)
	if len(call.Descriptors) > 0 {
		for _, e := range call.Descriptors[0].Entries {
			rules = append(rules, l.byEntry[e]...)
		}
	}
	slices.SortFunc(rules, func(a, b *Rule) int { return a.order - b.order })
	return slices.Compact(rules)
}

// applies reports whether the limit applies to a call.
func (w *when) applies(in *celInput) (bool, error) {
	for _, condition := range w.conditions {
		if ok, err := condition.Test(in); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// entity appends the name of the bucket's entity: the variables and their values.
func (w *when) entity(in *celInput, buf []byte) ([]byte, error) {
	for i, variable := range w.variables {
		value, err := variable.Text(in)
		if err != nil {
			return buf, err
		}
		if i > 0 {
			buf = append(buf, '/')
		}
		buf = append(appendEscaped(buf, variable.String(), "="), '=')
		buf = appendEscaped(buf, value, "")
	}
	if len(w.variables) == 0 {
		buf = append(buf, wholeEntity...)
	}
	return buf, nil
}

// CallLimit returns the limit of a limitador file that the rule is of, and whether it is of one.
func CallLimit(r *Rule) (CallLimitSpec, bool) {
	if r == nil || r.when == nil {
		return CallLimitSpec{}, false
	}
	return r.when.spec, true
}

// Counter returns a take of nothing from the bucket of an entity, and the values of the limit's variables there. Of a
// long entity the last value is cut. The rule must be one of a limitador file. The take has no limits where the rule
// admits nothing.
func Counter(r *Rule, entity string) (take limiter.Take, variables map[string]string) {
	t := &r.takes[0]
	take = limiter.Take{
		Entity: entity, Resource: r.domain.name, Limits: t.own.limits, LimitsOf: t.own.of, LimitsBy: t.own.by, Consume: []limiter.Consumption{{Limit: t.consume[0].Limit}},
	}
	variables = map[string]string{}
	if len(r.when.variables) == 0 {
		return take, variables
	}
	for part := range strings.SplitSeq(entity, "/") {
		name, value, _ := strings.Cut(part, "=")
		name, nameErr := url.PathUnescape(name)
		value, valueErr := url.PathUnescape(value)
		if nameErr == nil && valueErr == nil {
			variables[name] = value
		}
	}
	return take, variables
}
