package descriptor

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Rules are the compiled rules of all domains. They never change, and are safe
// for concurrent use. Nil and the zero Rules have no domains.
type Rules struct {
	domains   []*Domain
	byName    map[string]*Domain
	rules     []*Rule
	limitSets map[string]limitSet
	overrides *lru.Cache[overrideKey, *limiter.Limits]
}

// Domain returns the domain with the name, and whether there is one.
func (r *Rules) Domain(name string) (*Domain, bool) {
	if r == nil {
		return nil, false
	}
	d, ok := r.byName[name]
	return d, ok
}

// Domains returns the domains in the order of the file. The slice is shared.
func (r *Rules) Domains() []*Domain {
	if r == nil {
		return nil
	}
	return r.domains
}

// AddNames adds the names of the limits of plans, of rules, and those that rules consume.
func (r *Rules) AddNames(names map[string]bool) {
	if r == nil {
		return
	}
	for _, set := range r.limitSets {
		set.limits.AddNames(names)
	}
	for _, rule := range r.rules {
		for _, name := range rule.limits {
			names[name] = true
		}
		for _, t := range rule.takes {
			t.own.limits.AddNames(names)
		}
	}
}

// Len returns the number of rules in all domains. Every [Rule.Index] is below it.
func (r *Rules) Len() int {
	if r == nil {
		return 0
	}
	return len(r.rules)
}

// Domain is the compiled rules of one domain.
type Domain struct {
	name        string
	namespace   string
	denyUnknown bool
	body        Body
	listed      *resources // for takes without a list; nil = any
	rules       []*Rule
	keys        map[string]keyID // every key that a rule names
	enforcing   *index
	shadows     *index      // nil without shadow rules
	tree        *tree       // instead of the two indexes; nil for a domain of rules
	limits      *callLimits // likewise
}

// Name returns the name of the domain in the gateway's configuration.
func (d *Domain) Name() string { return d.name }

// Namespace returns the namespace of the domain's buckets.
func (d *Domain) Namespace() string { return d.namespace }

// DenyUnknown reports whether a descriptor that no rule matches is denied.
func (d *Domain) DenyUnknown() bool { return d.denyUnknown }

// Body returns the body of denials.
func (d *Domain) Body() Body { return d.body }

// Rules returns the rules in the order of the file. The slice is shared.
func (d *Domain) Rules() []*Rule { return d.rules }

// Rule is one compiled rule.
type Rule struct {
	patterns []pattern // in order of keys
	order    int       // among the rules of its domain
	open     bool      // matching reads no fields after this one

	domain    *Domain
	path      string
	name      string
	buckets   string // name of its own buckets
	label     string // of them, if it is a shadow rule
	index     int    // among the rules of all domains
	shadow    bool
	unlimited bool
	exempt    bool
	deny      *Denial
	settle    bool
	settles   []ConsumeSpec // by PerHit
	overdraw  bool
	override  string // the limit that Descriptor.Limit replaces; "" = none
	policy    limiter.Policy
	share     int64
	lease     limiter.LeasePolicy
	limits    []string
	takes     []take
	captures  []capture
	leaf      *leaf // of a rule of a tree
	when      *when // of a limit of a limitador file
}

// OfFile reports whether the domain has the descriptors of an envoyproxy/ratelimit file.
func (d *Domain) OfFile() bool { return d.tree != nil }

// OfLimits reports whether the domain has the limits of a limitador file.
func (d *Domain) OfLimits() bool { return d.limits != nil }

// Name returns the rule's name, unique in its domain.
func (r *Rule) Name() string { return r.name }

// Domain returns the domain of the rule.
func (r *Rule) Domain() *Domain { return r.domain }

// Index returns the rule's number, dense from 0 over the rules of all domains.
func (r *Rule) Index() int { return r.index }

// Path returns the place of the rule in the file: "domains[0].rules[3]".
func (r *Rule) Path() string { return r.path }

// Shadow reports whether the rule is in shadow mode: it never denies.
func (r *Rule) Shadow() bool { return r.shadow }

// Unlimited reports whether the rule admits every descriptor, or every call, and takes nothing.
func (r *Rule) Unlimited() bool { return r.unlimited || r.exempt }

// Denial returns the answer of a rule that denies every descriptor; nil for any other rule.
func (r *Rule) Denial() *Denial { return r.deny }

// Settles reports whether the rule settles reservations.
func (r *Rule) Settles() bool { return r.settle }

// Overdraws reports whether the rule charges the numbers of descriptors, into debt.
func (r *Rule) Overdraws() bool { return r.overdraw }

// Limits returns the names of the limits that the rule consumes, each once, in
// the order of the file. The slice is shared.
func (r *Rule) Limits() []string { return r.limits }

// OnUnavailable returns the rule's policy for an unavailable store.
func (r *Rule) OnUnavailable() limiter.Policy { return r.policy }

// LocalShare returns the rule's share for limiter.Local, see limiter.Request.
func (r *Rule) LocalShare() int64 { return r.share }

// Lease returns the token leases that the rule allows on its buckets.
func (r *Rule) Lease() limiter.LeasePolicy { return r.lease }

// limitSet is a plan, or the own limits of a take; without limits it is none.
type limitSet struct {
	limits *limiter.Limits
	of     string         // see limiter.Take.LimitsOf
	by     limiter.Origin // see limiter.Take.LimitsBy
	given  string         // see limiter.Take.Given
}

// take is one bucket that a rule takes from.
type take struct {
	path     string
	entity   template
	resource template
	listed   *resources // nil = any
	parents  []template
	limitSet template // of the name of a plan; no parts = none, or resolved to limits
	own      limitSet
	consume  []ConsumeSpec
	reserve  bool
	replaced int // index in consume of the limit that Descriptor.Limit replaces, or -1
}

// consumes reports whether the take has an amount of the limit.
func (t *take) consumes(limit string) bool {
	return slices.ContainsFunc(t.consume, func(c ConsumeSpec) bool { return c.Limit == limit })
}

// capture is the source of the value of a placeholder.
type capture struct {
	pattern int // index in Rule.patterns
	group   int // of its regular expression; 0 = the whole value
}

// capture appends the values of the rule's placeholders to values. The rule matches the descriptor
// of the view. Of a repeated key the first value that matches counts.
func (r *Rule) capture(v *view, values []captured) []captured {
	var groups []int
	var value string
	last, present := -1, false
	for _, c := range r.captures {
		p := &r.patterns[c.pattern]
		if c.pattern != last {
			value, present = matchAny(p, v)
			groups, last = nil, c.pattern
		}
		if c.group == 0 || !present {
			values = append(values, captured{value: value, present: present})
			continue
		}
		if groups == nil {
			groups = p.regex.FindStringSubmatchIndex(value)
		}
		var text string // a group that took no part in the match is empty
		if from := groups[2*c.group]; from >= 0 {
			text = value[from:groups[2*c.group+1]]
		}
		values = append(values, captured{value: text, present: true})
	}
	return values
}

// matchAny returns the first value that the pattern matches of its key, and whether there is one.
func matchAny(p *pattern, v *view) (string, bool) {
	from, to := v.find(p.key)
	for ; from < to; from++ {
		if value := v.value(from); p.matches(value) {
			return value, true
		}
	}
	return "", false
}
