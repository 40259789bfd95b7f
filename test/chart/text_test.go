package chart_test

import (
	"strings"
	"testing"
)

// Helm reads YAML 1.1, and the service YAML 1.2: text without quotes that Helm takes for a
// number or a boolean would be another value in the pods. The chart refuses it.
func TestTextNeedsQuotes(t *testing.T) {
	memory := modes(t)["memory"]
	for _, test := range []struct{ config, want string }{
		{`domains: [{domain: shop, rules: [{match: {tenant: 0123}}]}]`, "config.domains[0].rules[0].match.tenant: Helm reads it as 83"},
		{`domains: [{domain: shop, rules: [{match: {release: 1.10}}]}]`, "config.domains[0].rules[0].match.release: Helm reads it as 1.1"},
		{`domains: [{domain: shop, rules: [{match: {a: b}}, {match: {country: no}}]}]`, "config.domains[0].rules[1].match.country: Helm reads it as false"},
		{`domains: [{domain: shop, rules: [{match: {address: {cidr: [off]}}}]}]`, "config.domains[0].rules[0].match.address.cidr[0]: Helm reads it as false"},
		{`domains: [{domain: shop, rules: [{match: {on: x}}]}]`, `config.domains[0].rules[0].match: has the key "true"`},
		{`domains: [{domain: shop, rules: [{resource: no}]}]`, "config.domains[0].rules[0].resource: Helm reads it as false"},
		{`domains: [{domain: shop, rules: [{entity: yes}]}]`, "config.domains[0].rules[0].entity: Helm reads it as true"},
		{`domains: [{domain: shop, namespace: 010}]`, "config.domains[0].namespace: Helm reads it as 8"},
		{`domains: [{domain: 1_0}]`, "config.domains[0].domain: Helm reads it as 10"},
		{`domains: [{domain: shop, resources: [no, gpt-4]}]`, "config.domains[0].resources[0]: Helm reads it as false"},
		{`{domains: [{domain: shop}], limits: {resources: {on: {rpm: 1/minute}}}}`, `config.limits.resources: has the key "true"`},
	} {
		_, _, err := render(load(t), with(memory, "config", test.config))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "quotes") {
			t.Errorf("%s: got %v, want %q and the remedy", test.config, err, test.want)
		}
	}
	for _, config := range []string{
		`domains: [{domain: shop, unmatched: deny, rules: [{match: {tenant: "0123", country: 'no', d: 2026-01-01}, unlimited: yes}]}]`,
		`{domains: [{domain: shop}], limits: {resources: {"gpt-4": {rpm: {rate: 1/minute, burst: 10}}}}}`,
		`{domains: [x, {domain: shop, rules: {}}], limits: []}`, // the service reports the mistake
	} {
		if _, _, err := render(load(t), with(memory, "config", config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}
