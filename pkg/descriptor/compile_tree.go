package descriptor

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// tree compiles the descriptors of a domain.
func (c *compiler) tree(d *Domain, spec *DomainSpec) {
	t := &treeCompiler{compiler: c, domain: d, names: map[string]bool{treeOverride: true}}
	d.tree = &tree{root: t.level(spec.Tree, way{}), overdraw: spec.Overdraw}
	delete(t.names, treeOverride)
	d.tree.override = t.rule(&TreeSpec{Path: spec.Path}, way{name: treeOverride})
	d.tree.override.takes = []take{{consume: []ConsumeSpec{{Limit: treeLimit, PerHit: limiter.Milli}}}}
	d.tree.override.override = treeLimit
	d.tree.override.limits = []string{treeLimit}
}

// treeCompiler is the state of compiling one tree.
type treeCompiler struct {
	*compiler
	domain *Domain
	names  map[string]bool // of rules
}

// way is the way to a descriptor of a file.
type way struct {
	name   string   // the keys, with dots between them
	id     string   // unique; "" = the root
	keys   []string // as in the statistics of envoyproxy/ratelimit
	shared []string // for each level the pattern whose values share a bucket, or ""
}

// down returns the way to a descriptor below.
func (w way) down(s *TreeSpec) way {
	part := s.Key
	if s.Value != "" {
		part += "_" + s.Value
	}
	pattern := ""
	if s.ShareThreshold {
		pattern = s.Value
	}
	id := append([]byte(w.id), '/')
	id = append(appendEscaped(id, s.Key, "="), '=')
	return way{
		name:   strings.TrimPrefix(w.name+"."+part, "."),
		id:     string(appendEscaped(id, s.Value, "")),
		keys:   append(slices.Clone(w.keys), part),
		shared: append(slices.Clone(w.shared), pattern),
	}
}

// level compiles the descriptors below the way.
func (c *treeCompiler) level(specs []TreeSpec, above way) level {
	l := level{exact: map[Entry]*branch{}, patterns: map[string][]patternBranch{}, any: map[string]*branch{}}
	seen := map[Entry]string{}
	for i := range specs {
		s := &specs[i]
		e := Entry{Key: s.Key, Value: s.Value}
		if s.Key == "" {
			c.problem(s.Path+".key", "is missing; it is the key of a descriptor's entry")
		}
		if first, ok := seen[e]; ok {
			c.problem(s.Path, "key %q with value %q stands at %s already", s.Key, s.Value, first)
		}
		seen[e] = s.Path
		b := c.branch(s, above.down(s))
		switch p := newValuePattern(s.Value); {
		case s.Value == "":
			l.any[s.Key] = b
		case p.kind == exactValue:
			l.exact[e] = b
		default:
			l.patterns[s.Key] = append(l.patterns[s.Key], patternBranch{pattern: p, branch: b})
		}
	}
	return l
}

func (c *treeCompiler) branch(s *TreeSpec, to way) *branch {
	if s.ShareThreshold && !strings.Contains(s.Value, "*") {
		c.problem(s.Path+".share_threshold", "needs a value with '*': all values that match it share one bucket")
	}
	b := &branch{}
	if s.Limit != nil || len(s.Children) == 0 {
		b.rule = c.rule(s, to)
		c.limit(b.rule, s)
	}
	b.next = c.level(s.Children, to)
	return b
}

// rule adds a rule to the domain. Its name is the way to it, as in the statistics of
// envoyproxy/ratelimit. If that is no legal name, or is taken, the name is rule-N.
func (c *treeCompiler) rule(s *TreeSpec, to way) *Rule {
	r := &Rule{
		domain: c.domain, path: s.Path, index: len(c.rules), order: len(c.domain.rules),
		shadow: s.Shadow, leaf: &leaf{way: to.id, shared: to.shared, quoted: Quoted{Keys: to.keys, Metadata: s.Metadata, Quota: s.Quota, Shared: slices.ContainsFunc(to.shared, func(p string) bool { return p != "" })}, quota: s.Quota},
	}
	if s.Metadata != nil && !isJSON(s.Metadata) {
		c.problem(s.Path+".metadata", "must have texts, numbers, true, false, null, lists and mappings of texts only")
	}
	r.name = to.name
	for n := r.order + 1; c.names[r.name] || checkName(r.name) != ""; n++ {
		r.name = "rule-" + strconv.Itoa(n)
	}
	c.names[r.name] = true
	if r.shadow {
		r.label = "shadow/" + r.name
	}
	c.rules = append(c.rules, r)
	c.domain.rules = append(c.domain.rules, r)
	return r
}

// limit compiles the limit of a rule.
func (c *treeCompiler) limit(r *Rule, s *TreeSpec) {
	if s.Limit == nil { // without a limit it hides the limit of the key without a value
		r.unlimited, r.leaf.free = true, true
		return
	}
	path := s.Path + ".rate_limit"
	r.unlimited = s.Limit.Unlimited
	r.leaf.quoted.Name, r.leaf.replaces, r.leaf.quoted.Replaces = s.Limit.Name, s.Limit.Replaces, s.Limit.Replaces
	for i, name := range s.Limit.Replaces {
		if name == "" || name == s.Limit.Name {
			c.problem(path+".replaces["+strconv.Itoa(i)+"]", "must be the name of another limit")
		}
	}
	period := unit(s.Limit.Unit)
	switch {
	case s.Limit.Unlimited && s.Limit.Unit != "":
		c.problem(path+".unit", "stands beside `unlimited: true`; leave one of them out")
		return
	case s.Limit.Unlimited:
		return
	case period == 0:
		c.problem(path+".unit", "%q is no unit; it must be second, minute, hour, day, week, month or year", s.Limit.Unit)
		return
	}
	r.leaf.quoted.RequestsPerUnit, r.leaf.quoted.Unit = s.Limit.RequestsPerUnit, period
	name := treeLimit
	if limiter.ValidateLimitName(s.Limit.Name) == nil {
		name = s.Limit.Name
	}
	r.limits = []string{name}
	t := take{consume: []ConsumeSpec{{Limit: name, PerHit: limiter.Milli}}}
	if s.Limit.RequestsPerUnit == 0 {
		r.leaf.blocked = true
	} else {
		n := int64(s.Limit.RequestsPerUnit) // also the most debt: it is over after one more window
		limits, err := limiter.NewLimits(limiter.Custom(name, n, n, period).WithMaxDebt(n))
		if err != nil {
			c.problem(path, "%v", err)
		}
		t.own = limitSet{limits: limits, of: treeLimits}
	}
	r.takes = []take{t}
}

// isJSON reports whether a value can be one of JSON.
func isJSON(value any) bool {
	switch v := value.(type) {
	case nil, bool, int, int64, uint64, float64:
		return true
	case string:
		return utf8.ValidString(v)
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isJSON(item) })
	case map[string]any:
		for key, item := range v {
			if !utf8.ValidString(key) || !isJSON(item) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// unit returns the length of a unit of envoyproxy/ratelimit; 0 for an unknown one.
func unit(name string) time.Duration {
	const day = 24 * time.Hour
	switch strings.ToLower(name) {
	case "second":
		return time.Second
	case "minute":
		return time.Minute
	case "hour":
		return time.Hour
	case "day":
		return day
	case "week":
		return 7 * day
	case "month":
		return 30 * day
	case "year":
		return 365 * day
	default:
		return 0
	}
}
