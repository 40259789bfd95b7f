package config_test

import "testing"

// Placeholders and expressions as other programs have them are text, and get a warning.
func TestFormsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	const head = "domains:\n- domain: d\n  rules:\n"
	for rule, want := range map[string]map[string]string{
		`{match: {u: "*"}, entity: "user/{u}", resource: r`:               {},
		`{match: {u: "*"}, entity: "{{literal}}/$u", resource: "$r {{}}"`: {},
		`{match: {u: "*"}, entity: "user/{{u}}", resource: r`:             {"domains[0].rules[0].entity": "has the text {u}, as {{ and }} are braces: write {u} for the value of u"},
		`{match: {u: "*"}, entity: "user/${u}", resource: "{{ u }}"`: {
			"domains[0].rules[0].entity":   "has the character $ before the value of u: write {u}",
			"domains[0].rules[0].resource": "has the text {u}",
		},
		`{match: {u: "*"}, entity: e, resource: r, parent: ["{u}", "org/{{u}}"]`: {"domains[0].rules[0].parent[1]": "has the text {u}"},
		`{match: {u: "^/v1/.*$"}, entity: e, resource: r`:                        {"domains[0].rules[0].match.u": "is text that begins with ^: a regular expression is written {regex: ...}"},
		`{match: {u: [a, "^b"]}, entity: e, resource: r`:                         {"domains[0].rules[0].match.u": "is text that begins with ^"},
		`{match: {u: {regex: "^a"}}, entity: e, resource: r`:                     {},
	} {
		wantWarnings(t, rule, warnings(t, head+"  - "+rule+", limits: {rpm: 1/minute}, consume: {rpm: 1}}\n"), want)
	}
	priced := `{match: {u: "*", model: "*", kind: "*"}, entity: "user/{{u}}", resource: r, limits: {usd: 5 USD/month calendar}, consume: {usd: price}}`
	wantWarnings(t, priced, warnings(t, "prices: {m1: {input: 1, output: 2}}\n"+head+"  - "+priced+"\n"), map[string]string{"domains[0].rules[0].entity": "has the text {u}"})
}
