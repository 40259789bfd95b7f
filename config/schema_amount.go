package config

import (
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// use says for which purpose an amount is given.
type use int

const (
	consumed use = iota // a number, hits, or {hits: a weight}
	reserved            // the same, and an estimate
	byHits              // hits, or {hits: a weight}
)

// amounts says how much of each limit is taken or settled.
func amounts(out *[]entry[descriptor.ConsumeSpec], of use) schema {
	return dict[descriptor.ConsumeSpec]{out: out, what: "a limit", name: limiter.ValidateLimitName, item: func(c *descriptor.ConsumeSpec) schema {
		return amountSchema{c, of}
	}}
}

// amountSchema is the amount of one limit.
type amountSchema struct {
	out *descriptor.ConsumeSpec
	of  use
}

func (s amountSchema) decode(d *decoder, v value) {
	switch {
	case v.node.Kind == yaml.MappingNode:
		s.out.PerHit = -1
		before := d.failures()
		s.object().decode(d, v)
		if s.out.PerHit < 0 && d.failures() == before {
			d.failf(v, "needs hits, a weight for each hit: %s", s.example())
		}
	case v.node.Kind == yaml.ScalarNode && v.node.Value == "hits":
		s.out.PerHit = limiter.Milli
	case s.of == byHits:
		d.failf(v, "must be hits or {hits: 2.5}, not %s; a settlement takes its number from the descriptor", d.describe(v.node))
	case v.node.Tag == "!!int" || v.node.Tag == "!!float":
		thousandths(&s.out.Constant, 0, maxAmount).decode(d, v)
	default:
		d.failf(v, "must be a number, hits, or %s, not %s", s.example(), d.describe(v.node))
	}
}

func (s amountSchema) example() string {
	if s.of == reserved {
		return "{hits: true, estimate: {min: 100, max: 4000}}"
	}
	return "{hits: 2.5}"
}

// maxAmount bounds the amount that one call takes: the capacity of the largest possible bucket.
const maxAmount = limiter.MaxTokens * limiter.Milli

func (s amountSchema) object() object {
	keys := []key{{"hits", weightSchema{&s.out.PerHit}}}
	if s.of == reserved {
		keys = append(keys, key{"estimate", estimateSchema{&s.out.Estimate}})
	}
	return object{title: "amount", keys: keys}
}

func (s amountSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

// weightSchema is the number of tokens for each hit; true is one.
type weightSchema struct{ out *int64 }

func (s weightSchema) decode(d *decoder, v value) {
	if v.node.Tag != "!!bool" {
		thousandths(s.out, 1, maxAmount).decode(d, v)
		return
	}
	var one bool
	boolean(&one).decode(d, v)
	if one {
		*s.out = limiter.Milli
	} else {
		d.failf(v, "must be true, for one token a hit, or a weight such as 2.5; leave the limit out to take nothing of it")
	}
}

func (weightSchema) walk(string, func(string)) {}

// estimateSchema is the amount to reserve for a descriptor that has no number.
type estimateSchema struct{ out **descriptor.EstimateSpec }

func (s estimateSchema) decode(d *decoder, v value) {
	var e descriptor.EstimateSpec
	before := d.failures()
	s.object(&e).decode(d, v)
	switch {
	case d.failures() > before:
	case e.Min == 0 || e.Max == 0:
		d.failf(v, "needs min and max: {min: 100, max: 4000}")
	case e.Min > e.Max:
		d.failf(v, "has a min of %s, above its max of %s: exchange them", decimal(e.Min), decimal(e.Max))
	default:
		*s.out = &e
	}
}

func (estimateSchema) object(e *descriptor.EstimateSpec) object {
	return object{title: "estimate", keys: []key{
		{"min", thousandths(&e.Min, 1, maxAmount)}, {"max", thousandths(&e.Max, 1, maxAmount)},
	}}
}

func (s estimateSchema) walk(path string, visit func(string)) {
	s.object(new(descriptor.EstimateSpec)).walk(path, visit)
}
