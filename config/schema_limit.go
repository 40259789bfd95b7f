package config

import (
	"errors"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limits is a mapping of names to limits without budgets. After a mistake every name stands for an
// unlimited limit, so that references to it are not reported too.
func limits(out **limiter.Limits) yamlcfg.Schema { return limitsSchema{out: out} }

// ReadLimits reads limits by name, with their budgets, in the form that the configuration has.
func ReadLimits(n yamlcfg.Node, out **limiter.Limits, budgets **limiter.Budgets) {
	n.Read(limitsSchema{out, budgets})
}

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

func (s limitsSchema) Decode(d *yamlcfg.Decoder, v yamlcfg.Value) {
	var entries []yamlcfg.Entry[namedLimit]
	before := d.Failures()
	s.dict(&entries).Decode(d, v)
	sound := d.Failures() == before
	set := make([]limiter.Limit, len(entries))
	for i, e := range entries {
		set[i] = e.Value.Limit
		set[i].Name = e.Name
		if !sound {
			set[i] = limiter.Unlimited(e.Name)
		}
	}
	limits, err := limiter.NewLimits(set...)
	if err != nil {
		d.Failf(v, "%s", reason(err))
		limits = &limiter.Limits{}
	}
	*s.out = limits
	if sound && s.budgets != nil {
		*s.budgets = budgetsOf(entries)
	}
}

// Shape describes the mapping.
func (s limitsSchema) Shape() *yamlcfg.Shape { return s.dict(new([]yamlcfg.Entry[namedLimit])).Shape() }

func (s limitsSchema) dict(out *[]yamlcfg.Entry[namedLimit]) yamlcfg.Schema {
	return yamlcfg.Dict[namedLimit]{Out: out, What: "a limit", Name: validLimitName, Item: func(l *namedLimit) yamlcfg.Schema {
		return limit(l, s.budgets != nil)
	}}
}

// limit is a rate, or a mapping with a rate and further keys.
func limit(out *namedLimit, budgets bool) yamlcfg.Schema {
	l := &out.Limit
	var burst, debt int64 = 0, -1
	return yamlcfg.Either{Other: rate(l), Mapping: yamlcfg.Object{Title: "limit", Needs: []string{"rate"}, Keys: []yamlcfg.Key{
		key("rate", "tokens and period, or `unlimited`; `rpm: 600/minute` is short for `rpm: {rate: 600/minute}`", rate(l)),
		key("burst", "the capacity", yamlcfg.Integer(&burst, 1, limiter.MaxTokens)),
		key("max_debt", "how far below zero a charge may go", yamlcfg.Integer(&debt, 0, limiter.MaxTokens)),
		key("budget", "[amounts of usage](#budgets) with events; under `limits` only, not for `unlimited`", budget(&out.budgets, budgets)),
	}}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, sound bool) {
		switch {
		case !sound:
		case l.Unlimited && (burst > 0 || debt >= 0):
			d.Failf(v, "an unlimited limit has neither burst nor max_debt: leave them out")
		case l.Unlimited && len(out.budgets) > 0:
			d.Failf(v, "is unlimited, and usage of such a limit is not counted: leave budget out, or give a high rate, such as 1_000_000_000/second")
		case !l.Unlimited && l.RefillAmount == 0:
			d.Failf(v, "needs rate, such as {rate: 100/minute, burst: 200}")
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
	})}
}

// rate is "100/minute" or "unlimited".
func rate(out *limiter.Limit) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: `^unlimited$|^[0-9][0-9_]*/.+$`}, Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		if !v.IsScalar() || v.Null() {
			d.Failf(v, "%v, not %s", errRate, d.Describe(v))
			return
		}
		l, err := ParseRate(v.Text())
		if err != nil {
			d.Failf(v, "%v", err)
			return
		}
		*out = l
	}}
}

// validLimitName returns the mistake in the name of a limit.
func validLimitName(name string) error {
	if err := limiter.ValidateLimitName(name); err != nil {
		return errors.New(reason(err))
	}
	return nil
}

// reason returns the text of an error of the domain without the text of its kind.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), limiter.ErrInvalid.Error()+": ")
}
