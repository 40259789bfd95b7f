package config_test

import "testing"

// A limit of money below a cent is probably one whose number is of dollars. It gets a warning.
func TestLimitsBelowACent(t *testing.T) {
	t.Parallel()
	const (
		rules = "\ndomains: [{domain: d, rules: [{match: {u: '*'}, entity: 'u/{u}', resource: r, consume: {usd: 1, rpm: 1}}, {match: {o: '*'}, entity: o, resource: r, limits: {own_usd: {quota: 50/day}}, consume: {own_usd: 1}}]}]"
		own   = "domains[0].rules[1].limits.own_usd"
		half  = "holds 0.00005 USD: a number without USD counts millionths of a dollar; write 50 USD for dollars"
	)
	for text, want := range map[string]map[string]string{
		"limits: {system: {rpm: 1/minute, usd: {quota: 100/month}}}":                                                  {own: half, "limits.system.usd": "holds 0.0001 USD: a number without USD counts millionths of a dollar; write 100 USD"},
		"limits: {system: {rpm: 1/minute, usd: {quota: 100 USD/month}}}":                                              {own: half},
		"limits: {system: {rpm: 1/minute, usd: {rate: 1_000_000/hour, burst: 10_000}}}":                               {own: half},
		"limits: {system: {rpm: 1/minute, usd: 1 USD/hour}, entities: {'u/*': {plan: p}}}\nplans: {p: {usd: 5/hour}}": {own: half, "plans.p.usd": "holds 0.000005 USD"},
		"limits: {system: {rpm: 1/minute, usd: unlimited}, entities: {u/a: {limits: {_default_: {usd: 0/day}}}}}":     {own: half},
	} {
		wantWarnings(t, text, warnings(t, text+rules), want)
	}
}
