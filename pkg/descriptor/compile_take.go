package descriptor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// maxParents is the greatest number of parents that a rule may name.
const maxParents = limiter.MaxLevels - 1

// effect compiles the effect of the rule: exactly one of takes, unlimited, exempt, deny, settle and end.
func (c *compiler) effect(r *Rule, spec *RuleSpec) {
	effects := 0
	for _, has := range []bool{len(spec.Takes) > 0, spec.Unlimited, spec.Exempt, spec.Deny != nil, r.settle} {
		if has {
			effects++
		}
	}
	switch {
	case effects == 0:
		c.problem(spec.Path, "does nothing; give it `entity`, `resource` and `consume`, or `takes`, `unlimited: true`, `exempt: call` or `deny: true`")
	case effects == 1 && spec.End && len(spec.Settle) > 0:
		c.problem(spec.Path+".end", "stands beside `settle`, which ends the request too; leave it out")
	case effects > 1:
		c.problem(spec.Path, "must do one thing: take from buckets, or `unlimited: true`, `exempt: call`, `deny: true`, `settle` or `end: true`")
	case spec.Exempt && spec.Shadow:
		c.problem(spec.Path+".mode", "is shadow, and the rule exempts calls: it would change nothing; leave one out")
	case spec.Overdraw && len(spec.Takes) == 0:
		c.problem(spec.Path+".overdraw", "has nothing to charge: the rule consumes nothing; leave it out")
	case spec.Lease != (limiter.LeasePolicy{}) && len(spec.Takes) == 0:
		c.problem(spec.Path+".lease", "has nothing to lease: the rule takes from no bucket; leave it out")
	}
	if err := spec.Lease.Check(); err != nil {
		c.problem(spec.Path+".lease", "%v", err)
	}
	if d := spec.Deny; d != nil && d.Status != 0 && (d.Status < 400 || d.Status > 599) {
		c.problem(spec.Path+".deny.status", "is %d; a status of a denial is 400 to 599", d.Status)
	}
	c.settle(r, spec)
	for i := range spec.Takes {
		if spec.Overdraw && spec.Takes[i].Reserve {
			c.problem(spec.Path+".overdraw", "stands beside `reserve`: a number would be both charged and reserved; leave one out")
		}
		c.take(r, &spec.Takes[i])
	}
}

// KeyReservation is the key of the entry that has the id of the reservation, for a rule that
// settles it.
const KeyReservation = "reservation_id"

// settle compiles the limits that the rule settles.
func (c *compiler) settle(r *Rule, spec *RuleSpec) {
	for _, s := range spec.Settle {
		at := spec.Path + ".settle." + s.Limit
		if err := limiter.ValidateLimitName(s.Limit); err != nil {
			c.problem(at, "%v", err)
		}
		if s.Constant != 0 || s.PerHit < 0 || s.PerHit > tokenbucket.MaxAmount {
			c.problem(at, "must be hits, or {hits: a weight}; a settlement takes its number from the descriptor")
		}
		r.addLimit(s.Limit)
	}
	if r.settle && !slices.ContainsFunc(r.patterns, func(p pattern) bool { return p.name == KeyReservation && !p.optional }) {
		c.problem(spec.Path+".match", "needs %s, the entry with the id of the reservation: {%s: \"*\"}", KeyReservation, KeyReservation)
	}
}

func (r *Rule) addLimit(name string) {
	if !slices.Contains(r.limits, name) {
		r.limits = append(r.limits, name)
	}
}

// take compiles one bucket of the rule.
func (c *compiler) take(r *Rule, spec *TakeSpec) {
	t := take{path: spec.Path, own: limitSet{limits: spec.Limits}, reserve: spec.Reserve, replaced: -1}
	t.entity = c.template(r, spec.Path+".entity", spec.Entity, false)
	t.resource = c.template(r, spec.Path+".resource", spec.Resource, false)
	c.resources(r, spec, &t)
	if len(spec.Parents) > maxParents {
		c.problem(spec.Path+".parent", "has %d parents; an entity has at most %d ancestors", len(spec.Parents), maxParents)
	}
	for i, parent := range spec.Parents {
		path := spec.Path + ".parent"
		if len(spec.Parents) > 1 {
			path = fmt.Sprintf("%s[%d]", path, i)
		}
		t.parents = append(t.parents, c.template(r, path, parent, true))
	}
	c.limits(r, spec, &t)
	if spec.Limits != nil {
		t.own.of = r.limitsOf(spec.Limits)
	}
	c.consume(r, spec, &t)
	r.takes = append(r.takes, t)
}

// template compiles a template and binds its placeholders to captures of r. After a mistake its
// result is not used.
func (c *compiler) template(r *Rule, path, text string, optional bool) template {
	t, err := parseTemplate(text)
	if err == nil && !c.unbound {
		err = t.placeholders(func(p *part) error { return r.bind(p, optional) })
	}
	if err != nil {
		c.problem(path, "%v", err)
	}
	return t
}

// bind gives a placeholder its capture. The captures of one pattern are adjacent, so that a regular
// expression runs once for all its groups.
func (r *Rule) bind(p *part, optional bool) error {
	found := captureOf(r.patterns, p.text)
	if found.pattern < 0 {
		name, bits, cuts, err := cutPrefix(p.text)
		if err != nil {
			return err
		}
		if cuts {
			found, p.bits = captureOf(r.patterns, name), bits
		}
	}
	if found.pattern < 0 {
		return fmt.Errorf("{%s} is neither a key of the rule nor a named group of a regular expression; there is %s", p.text, r.placeholders())
	}
	if q := &r.patterns[found.pattern]; q.optional && !optional {
		return fmt.Errorf("{%s} may be absent, as %q is optional; only `parent` can have it", p.text, q.name+"?")
	}
	p.capture = slices.Index(r.captures, found)
	if p.capture < 0 {
		p.capture = len(r.captures)
		r.captures = append(r.captures, found)
	}
	return nil
}

// captureOf returns the source of a placeholder of a name; that of no pattern where there is none.
func captureOf(patterns []pattern, name string) capture {
	found := capture{pattern: -1}
	for i := range patterns {
		q := &patterns[i]
		if q.name == name {
			found = capture{pattern: i}
		} else if q.regex != nil && q.regex.SubexpIndex(name) > 0 {
			found = capture{pattern: i, group: q.regex.SubexpIndex(name)}
		}
	}
	return found
}

// placeholders lists the placeholders that templates of the rule may have.
func (r *Rule) placeholders() string {
	var names []string
	for i := range r.patterns {
		p := &r.patterns[i]
		names = append(names, "{"+p.name+"}")
		if p.regex == nil {
			continue
		}
		for _, group := range p.regex.SubexpNames() {
			if group != "" {
				names = append(names, "{"+group+"}")
			}
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// limits compiles the source of the limits of a take.
func (c *compiler) limits(r *Rule, spec *TakeSpec, t *take) {
	path := spec.Path + ".limits"
	if spec.Plan == "" {
		return
	}
	if spec.Limits != nil {
		c.problem(path, "has a plan and limits; give one of them")
		return
	}
	name := c.template(r, path, spec.Plan, false)
	if len(name.parts) == 0 || !name.isLiteral() {
		t.limitSet = name
		return
	}
	found, ok := c.limitSets[name.parts[0].text]
	if !ok {
		c.problem(path, "there is no plan %q; there is %s", name.parts[0].text, c.planNames())
		return
	}
	t.own = found
}

// limitsOf names limits that stand in the rule, after the first take that has them. So a change of
// the limits changes no bucket's name.
func (r *Rule) limitsOf(limits *limiter.Limits) string {
	first := slices.IndexFunc(r.takes, func(t take) bool { return t.own.limits == limits })
	if first < 0 {
		first = len(r.takes)
	}
	return fmt.Sprintf("rule/%q/%q/%d", r.domain.name, r.buckets, first)
}

func (c *compiler) planNames() string {
	if len(c.limitSets) == 0 {
		return "none: give it under `plans`"
	}
	names := slices.Sorted(maps.Keys(c.limitSets))
	for i := range names {
		names[i] = fmt.Sprintf("%q", names[i])
	}
	return strings.Join(names, ", ")
}

// consume compiles the amounts of a take.
func (c *compiler) consume(r *Rule, spec *TakeSpec, t *take) {
	path := spec.Path + ".consume"
	if spec.Reserve {
		path = spec.Path + ".reserve"
	}
	if len(spec.Consume) == 0 {
		c.problem(path, "is empty; say how much of which limit is used, like {rpm: 1}")
	}
	if len(spec.Consume) > limiter.MaxLimits {
		c.problem(path, "has %d limits; a bucket has at most %d", len(spec.Consume), limiter.MaxLimits)
	}
	seen := map[string]bool{}
	for _, s := range spec.Consume {
		at := path + "." + s.Limit
		if err := limiter.ValidateLimitName(s.Limit); err != nil {
			c.problem(at, "%v", err)
		}
		if of := limiter.TriedBeside(s.Limit); of != "" {
			c.problem(at, "is a shadow limit, which is tried wherever %s is consumed; consume %s", of, of)
		}
		if seen[s.Limit] {
			c.problem(at, "is given twice; give it once")
		}
		c.estimate(at, spec.Reserve, &s)
		for _, amount := range []int64{s.Constant, s.PerHit} {
			if amount < 0 || amount > tokenbucket.MaxAmount {
				c.problem(at, "is %d millitokens; it must be 0 to %d tokens", amount, int64(tokenbucket.MaxAmount/tokenbucket.Milli))
			}
		}
		seen[s.Limit] = true
		r.addLimit(s.Limit)
	}
	t.consume = slices.Clone(spec.Consume)
}

// estimate checks the estimate for a descriptor without a number.
func (c *compiler) estimate(at string, reserves bool, s *ConsumeSpec) {
	e := s.Estimate
	switch {
	case e == nil:
	case !reserves:
		c.problem(at+".estimate", "belongs to `reserve`: a consumed amount is never corrected later")
	case s.PerHit == 0:
		c.problem(at+".estimate", "belongs to an amount by hits: {hits: true, estimate: {min: 100, max: 4000}}")
	case e.Min < 1 || e.Max < e.Min || e.Max > tokenbucket.MaxAmount:
		c.problem(at+".estimate", "must have 0 < min <= max")
	}
}

// override compiles which limit a descriptor's own limit replaces: the named one, else the only one
// consumed, else the only one consumed by hits. Without such a limit a descriptor's own limit is
// ignored.
func (c *compiler) override(r *Rule, spec *RuleSpec) {
	if spec.Override != "" && (r.settle || !slices.Contains(r.limits, spec.Override)) {
		c.problem(spec.Path+".override", "%q is not a limit that the rule consumes; there is %s", spec.Override, nameList(r.limits))
		return
	}
	var byHits []string
	for i := range r.takes {
		for _, s := range r.takes[i].consume {
			if s.PerHit > 0 && !slices.Contains(byHits, s.Limit) {
				byHits = append(byHits, s.Limit)
			}
		}
	}
	switch {
	case r.settle:
	case spec.Override != "":
		r.override = spec.Override
	case len(r.limits) == 1:
		r.override = r.limits[0]
	case len(byHits) == 1:
		r.override = byHits[0]
	}
	for i := range r.takes {
		t := &r.takes[i]
		t.replaced = slices.IndexFunc(t.consume, func(s ConsumeSpec) bool { return s.Limit == r.override })
	}
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// list compiles a list of resources.
func (c *compiler) list(path string, all []string) *resources {
	for _, name := range all {
		switch {
		case name == "":
			c.problem(path, "has an empty name; write the name of a resource, or a pattern like \"gpt-4*\"")
		case newValuePattern(name).kind == anyValue:
			c.problem(path, "%q is every value, so that all would share one bucket; leave the list out to let every value have its own", name)
		}
	}
	return &resources{*newValues(all)}
}

// resources compiles the list of a take. The resource of such a take has a placeholder.
func (c *compiler) resources(r *Rule, spec *TakeSpec, t *take) {
	switch {
	case t.resource.isLiteral():
		if len(spec.Resources) > 0 {
			c.problem(spec.Path+".resources", "has nothing to check: the resource has no placeholder; leave it out")
		}
	case len(spec.Resources) > 0:
		t.listed = c.list(spec.Path+".resources", spec.Resources)
	default:
		t.listed = r.domain.listed
	}
}
