package descriptor

// OtherResource is the resource of values that are not in the list of a rule.
const OtherResource = "other"

// resources is a list of the resources that values of descriptors may stand for. Clients may send
// any number of values: there are at most one bucket for each entry of the list, and one for
// OtherResource.
type resources struct {
	names    map[string]bool
	patterns []pattern // in the order of the file
}

// find returns the resource that a value stands for.
func (l *resources) find(value string) string {
	if l.names[value] {
		return value
	}
	for i := range l.patterns {
		if p := &l.patterns[i]; p.matches(value) {
			return p.text
		}
	}
	return OtherResource
}

// list compiles a list of resources.
func (c *compiler) list(path string, all []string) *resources {
	l := &resources{names: map[string]bool{}}
	for _, name := range all {
		p := newValuePattern(name)
		switch {
		case name == "":
			c.problem(path, "has an empty name; write the name of a resource, or a pattern like \"gpt-4*\"")
		case p.kind == anyValue:
			c.problem(path, "%q is every value, so that all would share one bucket; leave the list out to let every value have its own", name)
		case p.kind == globValue:
			l.patterns = append(l.patterns, p)
		default:
			l.names[name] = true
		}
	}
	return l
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

// resource returns the resource of a take of the rule. The take will have the index in the request.
func (p *planner) resource(rule *Rule, t *take, index int) string {
	value := p.plan.render(&t.resource)
	if t.listed == nil {
		return value
	}
	found := t.listed.find(value)
	if found != value && !rule.shadow {
		p.plan.Unlisted = append(p.plan.Unlisted, Unlisted{Take: index, Value: value})
	}
	return found
}
