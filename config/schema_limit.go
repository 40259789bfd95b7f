package config

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limits is a mapping of names to limits. After a mistake every name stands for
// something unlimited, so that what refers to it is not reported too.
func limits(out **limiter.Limits) schema { return limitsSchema{out} }

type limitsSchema struct{ out **limiter.Limits }

func (s limitsSchema) decode(d *decoder, v value) {
	var entries []entry[limiter.Limit]
	before := d.failures()
	s.dict(&entries).decode(d, v)
	sound := d.failures() == before
	set := make([]limiter.Limit, len(entries))
	for i, e := range entries {
		set[i] = e.value
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
}

func (s limitsSchema) walk(path string, visit func(string)) {
	var entries []entry[limiter.Limit]
	s.dict(&entries).walk(path, visit)
}

func (limitsSchema) dict(out *[]entry[limiter.Limit]) schema {
	return dict[limiter.Limit]{out: out, what: "a limit", name: limiter.ValidateLimitName, item: func(l *limiter.Limit) schema {
		return limitSchema{l}
	}}
}

// limitSchema is a rate, or a mapping of a rate with more to it.
type limitSchema struct{ out *limiter.Limit }

func (s limitSchema) decode(d *decoder, v value) {
	if v.node.Kind != yaml.MappingNode {
		rate(s.out).decode(d, v)
		return
	}
	before := d.failures()
	var burst, debt int64 = 0, -1
	s.object(&burst, &debt).decode(d, v)
	l := s.out
	switch {
	case d.failures() > before:
	case l.Unlimited && (burst > 0 || debt >= 0):
		d.failf(v, "what is unlimited has neither burst nor max_debt: leave them out")
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
		{"rate", rate(s.out)},
		{"burst", integer(burst, 1, limiter.MaxTokens)},
		{"max_debt", integer(debt, 0, limiter.MaxTokens)},
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

// reason is the text of an error of the domain, without the kind of error.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), limiter.ErrInvalid.Error()+": ")
}
