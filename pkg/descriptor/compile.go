package descriptor

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxRuleName is the greatest length of a rule's name in bytes.
const maxRuleName = 64

// Compile makes rules of the specifications in a file. plans are the limits by the names that
// [TakeSpec].Plan gives. Compile finds every mistake, not only the first; with mistakes the Rules
// are nil. The Rules do not refer to the specifications.
func Compile(domains []DomainSpec, plans map[string]*limiter.Limits) (*Rules, []Problem) {
	c := &compiler{limitSets: make(map[string]limitSet, len(plans)), byName: map[string]*Domain{}}
	for name, limits := range plans {
		c.limitSets[name] = limitSet{limits: limits, of: planPrefix + name, by: limiter.ByPlan}
	}
	paths := map[string]string{}
	for i := range domains {
		spec := &domains[i]
		if first, ok := paths[spec.Domain]; ok {
			c.problem(spec.Path+".domain", "%q is the domain of %s already; put its rules there", spec.Domain, first)
		} else {
			paths[spec.Domain] = spec.Path
		}
		c.domain(spec)
	}
	overrides, err := lru.New[overrideKey, *limiter.Limits](maxOverrides)
	if err != nil {
		c.problem("", "%v", err)
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return &Rules{domains: c.domains, byName: c.byName, rules: c.rules, limitSets: c.limitSets, overrides: overrides}, nil
}

func (c *compiler) domain(spec *DomainSpec) {
	if spec.Domain == "" {
		c.problem(spec.Path+".domain", "is missing; it is the domain that the gateway's rate limit filter names")
	}
	d := &Domain{
		name:        spec.Domain,
		namespace:   cmp.Or(spec.Namespace, limiter.DefaultNamespace),
		denyUnknown: spec.DenyUnknown,
		body:        spec.Body,
		keys:        map[string]keyID{},
	}
	if len(spec.Resources) > 0 {
		d.listed = c.list(spec.Path+".resources", spec.Resources)
	}
	c.domains = append(c.domains, d)
	c.byName[d.name] = d
	if len(spec.Tree) > 0 {
		if len(spec.Rules) > 0 {
			c.problem(spec.Path+".rules", "stands beside `descriptors`; a domain has rules, or descriptors as envoyproxy/ratelimit has them")
		}
		c.tree(d, spec)
		return
	}
	if len(spec.Limits) > 0 {
		c.callLimits(d, spec)
		return
	}
	names := map[string]string{}
	var enforcing, shadows []*Rule
	for i := range spec.Rules {
		r := c.rule(d, &spec.Rules[i])
		if first, ok := names[r.name]; ok {
			c.problem(r.path+".name", "%q is the name of %s already; names are unique in a domain", r.name, first)
		} else {
			names[r.name] = r.path
		}
		if r.shadow {
			shadows = append(shadows, r)
		} else {
			enforcing = append(enforcing, r)
		}
	}
	seed := maphash.MakeSeed()
	d.enforcing = newIndex(seed, enforcing)
	if len(shadows) > 0 {
		d.shadows = newIndex(seed, shadows)
	}
}

// rule compiles one rule and adds it to its domain.
func (c *compiler) rule(d *Domain, spec *RuleSpec) *Rule {
	r := &Rule{
		domain: d, path: spec.Path, name: spec.Name, index: len(c.rules), order: len(d.rules),
		open: spec.Open, shadow: spec.Shadow, unlimited: spec.Unlimited, settle: len(spec.Settle) > 0 || spec.End,
		exempt: spec.Exempt, deny: spec.Deny, settles: slices.Clone(spec.Settle), overdraw: spec.Overdraw, policy: spec.OnUnavailable, share: spec.LocalShare,
		lease: spec.Lease,
	}
	d.rules = append(d.rules, r)
	c.rules = append(c.rules, r)
	if r.name == "" {
		r.name = "rule-" + strconv.Itoa(r.order+1)
	} else if text := checkName(r.name); text != "" {
		c.problem(spec.Path+".name", "%s", text)
	}
	r.buckets = cmp.Or(spec.Buckets, r.name)
	if r.shadow {
		r.label = "shadow/" + r.buckets
	}
	if spec.LocalShare < 0 || spec.LocalShare > 1000 {
		c.problem(spec.Path+".local.share", "is %d thousandths; it must be 1 to 1000", spec.LocalShare)
	}
	before := len(c.problems)
	c.match(r, spec)
	c.unbound = len(c.problems) > before
	c.effect(r, spec)
	c.override(r, spec)
	return r
}

// checkName returns the mistake in the name of a rule, which stands in metrics, headers and log
// lines; "" when there is none.
func checkName(name string) string {
	if len(name) > maxRuleName {
		return fmt.Sprintf("has %d bytes; a name has at most %d", len(name), maxRuleName)
	}
	bad := strings.IndexFunc(name, func(c rune) bool {
		return c == utf8.RuneError || !unicode.IsPrint(c) || strings.ContainsRune("\"'`\\", c)
	})
	if bad >= 0 {
		return fmt.Sprintf("%q must be printable, without quotes, backslashes and control characters", name)
	}
	return ""
}

// match compiles the patterns of the rule for keys.
func (c *compiler) match(r *Rule, spec *RuleSpec) {
	if len(spec.Match) == 0 && !spec.Open {
		c.problem(spec.Path+".match", `is empty; name the descriptor's keys, like {api_key: "*"}, or write {"*": "*"} for any`)
	}
	named := map[string]bool{}
	for i := range spec.Match {
		m := &spec.Match[i]
		if m.Key == "" {
			c.problem(m.Path, "has no key; write the key of a descriptor's entry")
		}
		if named[m.Key] {
			c.problem(m.Path, "key %q is named twice; name it once, with or without '?'", m.Key)
			continue
		}
		named[m.Key] = true
		id, ok := r.domain.keys[m.Key]
		if !ok {
			id = keyID(len(r.domain.keys)) // #nosec G115 -- a file does not hold four billion keys
			r.domain.keys[m.Key] = id
		}
		p := c.pattern(m)
		p.key, p.name, p.optional = id, m.Key, m.Optional
		r.patterns = append(r.patterns, p)
	}
	slices.SortFunc(r.patterns, func(a, b pattern) int { return cmp.Compare(a.key, b.key) })
	c.groups(r, spec)
}

// pattern compiles a pattern. After a mistake its result is not used.
func (c *compiler) pattern(m *MatchSpec) pattern {
	switch {
	case m.Regex != "":
		p, err := newRegexPattern(m.Regex)
		if err != nil {
			c.problem(m.Path+".regex", "%v", err)
		}
		return p
	case len(m.CIDR) > 0:
		p := newPattern(cidrValue, strings.Join(m.CIDR, ", "))
		for i, text := range m.CIDR {
			block, err := parseBlock(text)
			if err != nil {
				c.problem(fmt.Sprintf("%s.cidr[%d]", m.Path, i), "%v", err)
			}
			p.blocks = append(p.blocks, block)
		}
		return p
	case len(m.Values) > 0:
		p := newPattern(listValue, strings.Join(m.Values, ", "))
		p.list = newValues(m.Values)
		seen := make(map[string]bool, len(m.Values))
		for i, text := range m.Values {
			if seen[text] {
				c.problem(fmt.Sprintf("%s[%d]", m.Path, i), "%q stands in the list twice; write it once", text)
			}
			seen[text] = true
		}
		return p
	default:
		return newValuePattern(m.Value)
	}
}

// groups refuses named groups that share a name with a key or with each other. A placeholder of
// that name would be ambiguous.
func (c *compiler) groups(r *Rule, spec *RuleSpec) {
	taken := map[string]string{}
	for i := range spec.Match {
		taken[spec.Match[i].Key] = "a key of the rule"
	}
	for i := range r.patterns {
		p := &r.patterns[i]
		if p.regex == nil {
			continue
		}
		path := spec.Match[slices.IndexFunc(spec.Match, func(m MatchSpec) bool { return m.Key == p.name })].Path + ".regex"
		for _, group := range p.regex.SubexpNames() {
			if group == "" {
				continue
			}
			if by, ok := taken[group]; ok {
				c.problem(path, "the named group %q has the name of %s; give it another", group, by)
			}
			taken[group] = fmt.Sprintf("a group in the pattern of %q", p.name)
		}
	}
}
