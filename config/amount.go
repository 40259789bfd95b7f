package config

import (
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// use says for which purpose an amount is given.
type use int

const (
	consumed use = iota // a number, hits, or {hits: a weight}
	reserved            // the same, and an estimate
	settled             // hits, or {hits: a weight}
)

// amounts says how much of each limit is taken or settled.
func amounts(out *[]yamlcfg.Entry[descriptor.ConsumeSpec], of use) yamlcfg.Schema {
	return amountsSchema{yamlcfg.Dict[descriptor.ConsumeSpec]{Out: out, What: "a limit", Name: validLimitName, Item: func(c *descriptor.ConsumeSpec) yamlcfg.Schema {
		return amount(c, of)
	}}}
}

// amountsSchema is a mapping of names to amounts, of which those in dollars are of limits of money.
type amountsSchema struct{ yamlcfg.Schema }

func (s amountsSchema) Decode(n yamlcfg.Node) {
	before := n.Failures()
	s.Schema.Decode(n)
	if n.Failures() == before && n.IsMapping() {
		n.Entries("a limit", checkMoney)
	}
}

// specs returns the amounts with the names of their limits; nil for none.
func specs(all []yamlcfg.Entry[descriptor.ConsumeSpec]) []descriptor.ConsumeSpec {
	if len(all) == 0 {
		return nil
	}
	out := make([]descriptor.ConsumeSpec, len(all))
	for i, a := range all {
		out[i] = a.Value
		out[i].Limit = a.Name
	}
	return out
}

// amount is the amount of one limit.
func amount(out *descriptor.ConsumeSpec, of use) yamlcfg.Schema {
	example := "{hits: 2.5}"
	all := []yamlcfg.Key{key("hits", "weight of a hit, three decimals: `consume: {tpm: {hits: 2.5}}`; also of `reserve` and `settle`", weight(&out.PerHit))}
	if of == reserved {
		example = "{hits: true, estimate: {min: 100, max: 4000}}"
		all = append(all, key("estimate", "reserves [by history](llm-gateways.md#estimates) without a number", estimate(&out.Estimate)))
	}
	shape := yamlcfg.Shape{Enum: []any{"hits", "price"}}
	if of != settled {
		shape = yamlcfg.Shape{AnyOf: []*yamlcfg.Shape{{Enum: []any{"hits", "price"}}, yamlcfg.Amount(new(int64), 0, maxAmount).Shape()}}
	}
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "amount", Keys: all, Needs: []string{"hits"}, Missing: "needs hits, a weight for each hit: " + example},
		Other: yamlcfg.Scalar{Of: shape, Read: func(n yamlcfg.Node) {
			switch {
			case n.IsScalar() && n.Raw() == "hits":
				out.PerHit = limiter.Milli
			case n.IsScalar() && n.Raw() == "price":
				out.PerHit, out.Priced = limiter.Milli, true
			case of == settled:
				n.Failf("must be hits, price or {hits: 2.5}, not %s; a settlement takes its number from the descriptor", n.Describe())
			case n.Is("!!int", "!!float"), n.IsScalar() && strings.HasSuffix(n.Raw(), money.Unit):
				yamlcfg.Amount(&out.Constant, 0, maxAmount).Decode(n)
			default:
				n.Failf("must be a number, hits, price, or %s, not %s%s", example, n.Describe(), likeAmount(n.Raw()))
			}
		}},
	}
}

// weight is the number of tokens for each hit; true is one.
func weight(out *int64) yamlcfg.Schema {
	number := yamlcfg.Amount(out, 1, maxAmount)
	shape := yamlcfg.Shape{AnyOf: []*yamlcfg.Shape{{Enum: []any{true}}, number.Shape()}}
	return yamlcfg.Scalar{Of: shape, Read: func(n yamlcfg.Node) {
		if !n.Is("!!bool") {
			number.Decode(n)
			return
		}
		var one bool
		yamlcfg.Bool(&one).Decode(n)
		if one {
			*out = limiter.Milli
		} else {
			n.Failf("must be true, for one token a hit, or a weight such as 2.5; leave the limit out to take nothing of it")
		}
	}}
}

// estimate is the amount to reserve for a descriptor that has no number.
func estimate(out **descriptor.EstimateSpec) yamlcfg.Schema {
	var e descriptor.EstimateSpec
	return yamlcfg.Object{Title: "estimate", Needs: []string{"min", "max"}, Missing: "needs min and max: {min: 100, max: 4000}", Keys: []yamlcfg.Key{
		key("min", "least reserved tokens, three decimals", yamlcfg.Amount(&e.Min, 1, maxAmount)),
		key("max", "most reserved tokens, at least `min`, and those without enough history", yamlcfg.Amount(&e.Max, 1, maxAmount)),
	}}.Then(func(n yamlcfg.Node, sound bool) {
		switch {
		case !sound:
		case e.Min > e.Max:
			n.Failf("has a min of %s, above its max of %s: exchange them", money.Grouped(yamlcfg.Decimal(e.Min)), money.Grouped(yamlcfg.Decimal(e.Max)))
		default:
			*out = &e
		}
	})
}

// likeAmount tells the form of an amount for a text that begins like one, and else nothing.
func likeAmount(text string) string {
	switch hint := yamlcfg.Grouping(text); {
	case hint != "":
		return hint
	case text != "" && text[0] >= '0' && text[0] <= '9':
		return "; dollars are written 1.50 USD"
	default:
		return ""
	}
}
