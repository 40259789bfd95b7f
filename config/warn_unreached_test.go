package config_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ratelimit/ratelimit/config"
)

// Limits, sets and prices that nothing reaches get a warning, where that is certain.
func TestWhatNothingReaches(t *testing.T) {
	t.Parallel()
	const (
		one      = "\ndomains: [{domain: d, rules: [{match: {u: '*'}, entity: 'u/{u}', resource: r, consume: {rpm: 1}}]}]"
		listed   = "\ndomains: [{domain: d, rules: [{match: {u: '*', m: '*'}, entity: 'user/{u}', parent: 'org/{m}', resource: '{m}', resources: [gpt-4, 'claude-*'], consume: {rpm: 1}}]}]"
		anything = "\ndomains: [{domain: d, rules: [{match: {u: '*'}, entity: '{u}', resource: '{u}', consume: {rpm: 1}}]}]"
	)
	none := map[string]string{}
	for text, want := range map[string]map[string]string{
		"limits: {system: {rpm: 1/minute, rpm.shadow: 1/minute, rpm.day: 5/day calendar}}" + one:                                                                                                        none,
		"limits: {system: {rpm: {rate: 1/minute, budget: {day: 5, deny: true}}}}" + one:                                                                                                                 none,
		"limits: {system: {rpm: 1/minute, rmp: 2/minute}}" + one:                                                                                                                                        {"limits.system.rmp": `no rule consumes rmp; did you mean "rpm"?`},
		"limits: {system: {rpm: 1/minute, slots.shadow: 2/minute}}" + one:                                                                                                                               {"limits.system.\"slots.shadow\"": "no rule consumes slots"},
		"plans: {pro: {rpm: 1/minute, seats: 1/minute}}\nlimits: {system: {rpm: 1/minute}, entities: {'u/*': {plan: pro}}}" + one:                                                                       {"plans.pro.seats": "no rule consumes seats"},
		"limits: {system: {rpm: 1/minute}, resources: {r: {rpm: 1/minute}}}" + one:                                                                                                                      none,
		"limits: {system: {rpm: 1/minute}, resources: {rr: {rpm: 1/minute}, r: {}}}" + one:                                                                                                              {"limits.resources.rr": `no rule takes from the resource rr; did you mean "r"?`},
		"limits: {system: {rpm: 1/minute}, entities: {u/ada: {limits: {_default_: {rpm: 1/minute}, r: {rpm: 1/minute}}}}}" + one:                                                                        none,
		"limits: {system: {rpm: 1/minute}, entities: {u/ada: {limits: {default: {rpm: 1/minute}}}}}" + one:                                                                                              {"limits.entities.u/ada.limits.default": `no rule takes from the resource default; did you mean "_default_"?`},
		"limits: {system: {rpm: 1/minute}, entities: {u/ada: {limits: {web: {rpm: 1/minute}}}}}" + one:                                                                                                  {"limits.entities.u/ada.limits.web": "no rule takes from the resource web"},
		"limits: {system: {rpm: 1/minute}, entities: {usr/ada: {limits: {_default_: {rpm: 1/minute}}}}}" + listed:                                                                                       {"limits.entities.usr/ada": `no rule takes from an entity usr/; did you mean "user/"?`},
		"limits: {system: {rpm: 1/minute}, entities: {usr/ada: {limits: {_default_: {rpm: 1/minute}}}}}" + one:                                                                                          {"limits.entities.usr/ada": `no rule takes from an entity usr/; did you mean "u/"?`},
		"limits: {system: {rpm: 1/minute}, entities: {'usr/*': {limits: {_default_: {rpm: 1/minute}}}}}" + listed:                                                                                       {"limits.entities.usr/*": `no rule takes from an entity usr/; did you mean "user/"?`},
		"limits: {system: {rpm: 1/minute}, entities: {org/a: {parent: team/b, cascade: true}, team/b: {limits: {_default_: {rpm: 1/minute}}}, project/c: {limits: {gpt-4: {rpm: 1/minute}}}}}" + listed: none,
		"limits: {system: {rpm: 1/minute}, resources: {gpt-4: {rpm: 1/minute}, 'claude-*': {rpm: 1/minute}, other: {rpm: 1/minute}}}" + listed:                                                          none,
		"limits: {system: {rpm: 1/minute}, resources: {gpt-5: {rpm: 1/minute}, claude: {rpm: 1/minute}}}" + listed:                                                                                      {"limits.resources.gpt-5": "no rule takes from the resource gpt-5", "limits.resources.claude": "no rule takes from the resource claude"},
		"limits: {system: {rpm: 1/minute}, resources: {web: {rpm: 1/minute}}, entities: {usr/a: {limits: {api: {rpm: 1/minute}}}}}" + anything:                                                          none,
		"sets: {blocked: [a], staff: [b]}\nlimits: {system: {rpm: 1/minute}}" + "\ndomains: [{domain: d, rules: [{match: {u: {set: blocked}}, entity: e, resource: r, consume: {rpm: 1}}]}]":            {"sets.staff": "is not used: no rule matches {set: staff}"},
		"prices: {gpt-4: {input: 1}}\nlimits: {system: {rpm: 1/minute}}" + one:                                                                                                                          {"prices": "is not used: no rule consumes by price"},
		"xds: {address: 'a:1'}\nlimits: {system: {rpm: 1/minute, rmp: 1/minute}, resources: {rr: {rpm: 1/minute}}}" + one:                                                                               none,
		"limits: {system: {rmp: 1/minute}}\ndomains: [{domain: d, unmatched: deny}]":                                                                                                                    none,
		"include: [{path: tree.yaml}]\nlimits: {system: {rpm: 1/minute, rmp: 1/minute}, resources: {rr: {rpm: 1/minute}}}" + one:                                                                        none,
	} {
		c, err := config.Parse("c.yaml", []byte(text), fstest.MapFS{"tree.yaml": {Data: []byte("domain: t\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 1}}]")}})
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		got := map[string]string{}
		for _, w := range c.Warnings {
			if strings.HasPrefix(w.Text, "limits nothing") || strings.HasPrefix(w.Text, "is not used") {
				got[w.Path] = w.Text
			}
		}
		wantWarnings(t, text, got, want)
	}
}

// A configuration without the files that it includes gets no such warning: their rules may reach everything.
func TestWhatIncludedFilesMayReach(t *testing.T) {
	t.Parallel()
	c, err := config.ParseBudgets("c.yaml", []byte("include: [{path: more.yaml}]\nsets: {a: [b]}\nlimits: {system: {rpm: 1/minute, rps: 1/s}}\n"+
		"domains: [{domain: d, rules: [{match: {u: '*'}, entity: e, resource: r, consume: {rpm: 1}}]}]"))
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Text, "is not read") {
		t.Errorf("got %v, %v", err, c.Warnings)
	}
}

// A limit of money is no mistake where all models are free.
func TestLimitsOfFreeModels(t *testing.T) {
	const file = "limits: {system: {usd: 5 USD/month calendar, rpm: 1/minute}}\nprices: {gpt: {input: 0}}\n" +
		"domains: [{domain: d, rules: [{match: {model: '*', kind: '*'}, entity: e, resource: r, consume: {usd: price}}, {match: {m: '*'}, entity: e, resource: r, consume: {rpm: 1}}]}]"
	wantWarnings(t, "free", warnings(t, file), map[string]string{})
}

// Of prices the first model that matches counts. One that is hidden gets one warning, whatever its kinds and rules.
func TestPricesInTheirOrder(t *testing.T) {
	t.Parallel()
	const rules = "\nlimits: {system: {usd: 1 USD/day calendar}}\n" +
		"domains: [{domain: d, rules: [{match: {m: '*', model: '*', kind: '*'}, entity: e, resource: r, consume: {usd: price}}, {match: {model: '*', kind: '*'}, entity: e, resource: r, consume: {usd: price}}]}]"
	for prices, want := range map[string]map[string]string{
		"gpt-4: {input: 1, output: 2}, 'gpt*': {input: 1, output: 2}": {},
		"'gpt*': {input: 1, output: 2}, gpt-4: {input: 1, output: 2}": {"prices.gpt-4": `never counts for input, output: under prices "gpt*" stands before it, and the first model that matches counts; put "gpt-4" first`},
		"'gpt*': {input: 1}, gpt-4: {input: 1, output: 2}":            {"prices.gpt-4": "never counts for input: under"},
		"'gpt*': {input: 1}, gpt-4: {output: 2}":                      {},
		"'gpt*': {input: 0}, gpt-4: {input: 0, output: 0}":            {"prices.gpt-4": "never counts for input: under"},
		"'a*b*c': {input: 1}, 'axb*ybc': {input: 1}":                  {"prices.axb*ybc": "never counts"},
		"'a*b*c': {input: 1}, 'a*c': {input: 1}, 'ab': {input: 1}":    {},
		"'*': {input: 1}, 'a*': {input: 1}":                           {"prices.a*": "never counts"},
	} {
		wantWarnings(t, prices, warnings(t, "prices: {"+prices+"}"+rules), want)
	}
}
