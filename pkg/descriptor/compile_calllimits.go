package descriptor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// missing reports whether an expression lacks an entry of the call.
func missing(err error) bool { return errors.Is(err, errMissingEntry) }

// callLimits compiles the limits of a domain of a limitador file.
func (c *compiler) callLimits(d *Domain, spec *DomainSpec) {
	expressions, err := newCELCompiler()
	if err != nil {
		c.problem(spec.Path, "%v", err)
		return
	}
	d.limits = &callLimits{byEntry: map[Entry][]*Rule{}}
	names, seen := map[string]bool{}, map[string]string{}
	for i := range spec.Limits {
		s := &spec.Limits[i]
		r := &Rule{domain: d, path: s.Path, index: len(c.rules), order: len(d.rules), when: &when{spec: *s, blocked: s.MaxValue == 0}}
		r.name = s.ruleName(names, r.order)
		names[r.name] = true
		identity := s.identity()
		if first, ok := seen[identity]; ok {
			c.problem(s.Path, "has the seconds, conditions and variables of %s, and so its counters: leave one of them out", first)
		}
		seen[identity] = s.Path
		c.callLimit(r, s, identity)
		c.when(r.when, s, expressions)
		c.rules = append(c.rules, r)
		d.rules = append(d.rules, r)
		d.limits.add(r)
	}
}

// add adds a limit to the index.
func (l *callLimits) add(r *Rule) {
	for _, condition := range r.when.conditions {
		if entry, value, ok := condition.Wants(); ok && entry.Descriptor == 0 {
			key := Entry{Key: entry.Key, Value: value}
			l.byEntry[key] = append(l.byEntry[key], r)
			return
		}
	}
	l.rest = append(l.rest, r)
}

// ruleName returns the name of the limit's rule: its name, or its id, if that is a legal name and not taken.
func (s *CallLimitSpec) ruleName(taken map[string]bool, order int) string {
	for _, name := range []string{s.Name, s.ID} {
		if name != "" && !taken[name] && checkName(name) == "" {
			return name
		}
	}
	name := ""
	for n := order + 1; name == "" || taken[name]; n++ {
		name = "limit-" + strconv.Itoa(n)
	}
	return name
}

// identity identifies the counters of a limit: those of another value of the limit are the same.
func (s *CallLimitSpec) identity() string {
	h := sha256.New()
	for _, list := range [][]string{{strconv.FormatInt(s.Seconds, 10)}, slices.Sorted(slices.Values(s.Conditions)), slices.Sorted(slices.Values(s.Variables))} {
		for _, text := range list {
			h.Write([]byte(strconv.Quote(text)))
		}
		h.Write([]byte{0})
	}
	return "limit/" + hex.EncodeToString(h.Sum(nil)[:12])
}

// callLimit compiles the amount of a limit.
func (c *compiler) callLimit(r *Rule, s *CallLimitSpec, identity string) {
	name := hitsLimit
	if limiter.ValidateLimitName(s.Name) == nil && limiter.TriedBeside(s.Name) == "" {
		name = s.Name
	}
	r.limits = []string{name}
	t := take{consume: []ConsumeSpec{{Limit: name, PerHit: limiter.Milli}}}
	if s.MaxValue > 0 { // also the most debt: it is over after one more window
		limits, err := limiter.NewLimits(limiter.Custom(name, s.MaxValue, s.MaxValue, time.Duration(s.Seconds)*time.Second).WithMaxDebt(s.MaxValue))
		if err != nil {
			c.problem(s.Path, "%v", err)
		}
		t.own = limitSet{limits: limits, of: identity}
	}
	r.takes = []take{t}
}

// when compiles the expressions of a limit.
func (c *compiler) when(w *when, s *CallLimitSpec, expressions *celCompiler) {
	list := func(key string, texts []string, compile func(string) (*celExpression, error)) (all []*celExpression) {
		for i, text := range texts {
			e, err := compile(text)
			if err != nil {
				c.problem(s.Path+"."+key+"["+strconv.Itoa(i)+"]", "%v", err)
				continue
			}
			all = append(all, e)
		}
		return all
	}
	w.conditions = list("conditions", s.Conditions, expressions.Condition)
	w.variables = list("variables", s.Variables, expressions.Variable)
	slices.SortFunc(w.variables, func(a, b *celExpression) int { return strings.Compare(a.String(), b.String()) })
}
