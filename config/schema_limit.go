package config

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limits is a mapping of names to limits without budgets. After a mistake every name stands for an
// unlimited limit, so that references to it are not reported too.
func limits(out **limiter.Limits) schema { return limitsSchema{out: out} }

// limitsSchema is a mapping of names to limits.
type limitsSchema struct {
	out     **limiter.Limits
	budgets **limiter.Budgets // nil = budgets cannot stand here
}

// namedLimit is one limit in the form of the file.
type namedLimit struct {
	limiter.Limit

	budgets []limiter.Budget // without its name
}

func (s limitsSchema) decode(d *decoder, v value) {
	var entries []entry[namedLimit]
	before := d.failures()
	s.dict(&entries).decode(d, v)
	sound := d.failures() == before
	set := make([]limiter.Limit, len(entries))
	for i, e := range entries {
		set[i] = e.value.Limit
		set[i].Name = e.name
		if !sound {
			set[i] = limiter.Unlimited(e.name)
		}
	}
	limits, err := limiter.NewLimits(set...)
	if err != nil {
		d.failf(v, "%s", reason(err))
		limits = &limiter.Limits{}
	}
	*s.out = limits
	if sound && s.budgets != nil {
		*s.budgets = budgetsOf(entries)
	}
}

func (s limitsSchema) walk(path string, visit func(string)) {
	var entries []entry[namedLimit]
	s.dict(&entries).walk(path, visit)
}

func (s limitsSchema) dict(out *[]entry[namedLimit]) schema {
	return dict[namedLimit]{out: out, what: "a limit", name: limiter.ValidateLimitName, item: func(l *namedLimit) schema {
		return limitSchema{out: l, budgets: s.budgets != nil}
	}}
}

// limitSchema is a rate, or a mapping with a rate and further keys.
type limitSchema struct {
	out     *namedLimit
	budgets bool // can stand here
}

func (s limitSchema) decode(d *decoder, v value) {
	if v.node.Kind != yaml.MappingNode {
		rate(&s.out.Limit).decode(d, v)
		return
	}
	before := d.failures()
	var burst, debt int64 = 0, -1
	s.object(&burst, &debt).decode(d, v)
	l := &s.out.Limit
	switch {
	case d.failures() > before:
	case l.Unlimited && (burst > 0 || debt >= 0):
		d.failf(v, "an unlimited limit has neither burst nor max_debt: leave them out")
	case l.Unlimited && len(s.out.budgets) > 0:
		d.failf(v, "is unlimited, and usage of such a limit is not counted: leave budget out, or give a high rate, such as 1_000_000_000/second")
	case !l.Unlimited && l.RefillAmount == 0:
		d.failf(v, "needs rate, such as {rate: 100/minute, burst: 200}")
	}
	if burst > 0 {
		l.Capacity = burst
	}
	switch {
	case debt == 0:
		l.MaxDebt = limiter.NoDebt
	case debt > 0:
		l.MaxDebt = debt
	}
}

func (s limitSchema) object(burst, debt *int64) object {
	return object{title: "limit", keys: []key{
		{"rate", rate(&s.out.Limit)},
		{"burst", integer(burst, 1, limiter.MaxTokens)},
		{"max_debt", integer(debt, 0, limiter.MaxTokens)},
		{"budget", budgetSchema{out: &s.out.budgets, allowed: s.budgets}},
	}}
}

func (s limitSchema) walk(path string, visit func(string)) {
	s.object(new(int64), new(int64)).walk(path, visit)
}

// rate is "100/minute" or "unlimited".
func rate(out *limiter.Limit) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind != yaml.ScalarNode || isNull(v.node) {
			d.failf(v, "%v, not %s", errRate, d.describe(v.node))
			return
		}
		l, err := ParseRate(v.node.Value)
		if err != nil {
			d.failf(v, "%v", err)
			return
		}
		*out = l
	})
}

// reason returns the text of an error of the domain without the text of its kind.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), limiter.ErrInvalid.Error()+": ")
}
