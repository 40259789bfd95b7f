package config

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// price is the prices of the tokens of a model, by their kind, in thousandths of a dollar for a million
// tokens. That is the weight of a hit in millitokens, where a token of the limit is a millionth of a dollar.
type price struct{ kinds []priceOf }

type priceOf struct {
	kind string
	per  int64 // 0 = they cost nothing; noPrice = it has none
}

// noPrice stands for the price of a kind that has none.
const noPrice = -1

// priceKinds are the kinds of tokens that have prices.
func priceKinds() []string { return []string{"input", "cached", "output"} }

func (p *price) schema() yamlcfg.Schema {
	docs := []string{"dollars for a million tokens of the question, three decimals", "the same for cached tokens", "the same for the answer"}
	p.kinds = make([]priceOf, len(docs))
	keys := make([]yamlcfg.Key, len(docs))
	for i, kind := range priceKinds() {
		p.kinds[i] = priceOf{kind, noPrice}
		keys[i] = key(kind, docs[i], perMillion(&p.kinds[i].per))
	}
	return yamlcfg.Object{Title: "price", Keys: keys, OneOf: priceKinds(), Missing: "needs input, cached or output, such as {input: 2.50, output: 10}"}
}

// perMillion is dollars with three decimals, with their unit or without.
func perMillion(out *int64) yamlcfg.Schema {
	number := yamlcfg.Thousandths(out, 0, maxAmount)
	shape := *number.Shape()
	shape.Pattern = yamlcfg.Amount(out, 0, maxAmount).Shape().Pattern
	return yamlcfg.Scalar{Of: shape, Read: func(n yamlcfg.Node) {
		tokens, ok := money.Parse(n.Raw())
		if !ok || !n.IsScalar() || tokens%milliDollar != 0 {
			number.Decode(n)
			return
		}
		*out = tokens / milliDollar
	}}
}

// milliDollar is the tokens of a thousandth of a dollar.
const milliDollar = money.Tokens / 1000

// The keys of the descriptors that prices are for.
const (
	keyModel = "model"
	keyKind  = "kind"
)

// expandPrices puts a rule for each model and kind in the place of one that consumes by price.
func (f *file) expandPrices(r *yamlcfg.Report, spec *descriptor.DomainSpec) {
	var out []descriptor.RuleSpec
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if !pricedRule(rule) {
			out = append(out, *rule)
			continue
		}
		f.addPricing(rule)
		model, kind := matchOf(rule, keyModel), matchOf(rule, keyKind)
		switch {
		case len(f.prices) == 0:
			r.Fail(r.Find(rule.Path), "consumes by price, and there are no prices: give them at the top, such as prices: {gpt-4o: {input: 2.50, output: 10}}")
		case model < 0 || rule.Match[model].Value != "*" || rule.Match[model].Optional:
			r.Fail(r.Find(rule.Path+".match"), `needs model: "*", whose value has the price`)
		case kind < 0 || rule.Match[kind].Optional || rule.Match[kind].Value != "*" && !slices.Contains(priceKinds(), rule.Match[kind].Value):
			r.Fail(r.Find(rule.Path+".match"), `needs kind: "*", or kind: input, cached or output`)
		case notByPrice(rule) != "":
			r.Fail(r.Find(rule.Path), "takes from %s by price, which %s", notByPrice(rule), money.NotMoney(notByPrice(rule)))
		default:
			out = append(out, f.priced(rule, cmp.Or(rule.Name, "rule-"+strconv.Itoa(i+1)), model, kind)...)
		}
	}
	spec.Rules = out
}

// addPricing notes the limits that a rule consumes by price.
func (f *file) addPricing(rule *descriptor.RuleSpec) {
	if f.pricing == nil {
		f.pricing = make(map[string]bool)
	}
	anyAmount(rule, func(c descriptor.ConsumeSpec) bool {
		if c.Priced {
			f.pricing[c.Limit] = true
		}
		return false
	})
}

// priced returns the rules for each model and kind.
func (f *file) priced(rule *descriptor.RuleSpec, name string, model, kind int) (out []descriptor.RuleSpec) {
	for _, of := range f.prices {
		for _, p := range of.Value.kinds {
			if want := rule.Match[kind].Value; p.per == noPrice || want != "*" && want != p.kind {
				continue
			}
			one := *rule
			one.Buckets = name
			one.Name = name + " " + of.Name + " " + p.kind
			one.Match = slices.Clone(rule.Match)
			one.Match[model].Value, one.Match[kind].Value = of.Name, p.kind
			one.Settle = atPrice(rule.Settle, p.per)
			if p.per == 0 {
				free(&one)
			}
			one.Takes = slices.Clone(one.Takes)
			for i := range one.Takes {
				one.Takes[i].Consume = atPrice(one.Takes[i].Consume, p.per)
			}
			out = append(out, one)
		}
	}
	return out
}

// free takes the amounts by price out of a rule, as an amount of 0 would still need a token. A rule that then takes and
// settles nothing admits the descriptor.
func free(rule *descriptor.RuleSpec) {
	overrides := false
	takes := rule.Takes
	rule.Takes = nil
	for _, t := range takes {
		t.Consume = slices.DeleteFunc(slices.Clone(t.Consume), func(c descriptor.ConsumeSpec) bool { return c.Priced })
		overrides = overrides || slices.ContainsFunc(t.Consume, func(c descriptor.ConsumeSpec) bool { return c.Limit == rule.Override })
		if len(t.Consume) > 0 {
			rule.Takes = append(rule.Takes, t)
		}
	}
	if !overrides {
		rule.Override = ""
	}
	if len(rule.Takes)+len(rule.Settle) == 0 {
		*rule = descriptor.RuleSpec{Path: rule.Path, Name: rule.Name, Buckets: rule.Buckets, Match: rule.Match, Open: rule.Open, Shadow: rule.Shadow, Unlimited: true}
	}
}

// atPrice returns amounts with a price in the place of those that are by price.
func atPrice(all []descriptor.ConsumeSpec, per int64) []descriptor.ConsumeSpec {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Priced {
			all[i].PerHit, all[i].Priced = per, false
		}
	}
	return all
}

func pricedRule(rule *descriptor.RuleSpec) bool {
	return anyAmount(rule, func(c descriptor.ConsumeSpec) bool { return c.Priced })
}

// notByPrice returns a limit that has amounts by price, and is none of money; "" for none.
func notByPrice(rule *descriptor.RuleSpec) (limit string) {
	anyAmount(rule, func(c descriptor.ConsumeSpec) bool {
		if c.Priced && !money.Is(c.Limit) {
			limit = c.Limit
		}
		return limit != ""
	})
	return limit
}

// anyAmount reports whether is holds for an amount of the rule.
func anyAmount(rule *descriptor.RuleSpec, is func(descriptor.ConsumeSpec) bool) bool {
	return slices.ContainsFunc(rule.Settle, is) || slices.ContainsFunc(rule.Takes, func(t descriptor.TakeSpec) bool { return slices.ContainsFunc(t.Consume, is) })
}

// matchOf returns the index of the pattern for a key, or -1.
func matchOf(rule *descriptor.RuleSpec, key string) int {
	return slices.IndexFunc(rule.Match, func(m descriptor.MatchSpec) bool { return m.Key == key })
}
