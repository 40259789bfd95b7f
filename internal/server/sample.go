package server

import (
	"encoding/json"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// sample returns the JSON of a request that the configuration has a limit for,
// to be tried by a new user: one descriptor of the first rule that takes something.
func sample(rules *descriptor.Rules) string {
	type entry struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	type entries struct {
		Entries []entry `json:"entries"`
	}
	request := struct {
		Domain      string    `json:"domain"`
		Descriptors []entries `json:"descriptors"`
	}{Domain: "example"}
	for _, d := range rules.Domains() {
		for _, r := range d.Rules() {
			example := r.Example()
			call := descriptor.Call{Domain: d.Name(), Descriptors: []descriptor.Descriptor{{Entries: example}}}
			var plan descriptor.Plan
			if rules.Plan(&call, &plan); plan.Outcomes[0].Kind != descriptor.Takes {
				continue
			}
			request.Domain = d.Name()
			var e entries
			for _, x := range example {
				e.Entries = append(e.Entries, entry(x))
			}
			request.Descriptors = []entries{e}
			return shellQuoted(request)
		}
	}
	request.Descriptors = []entries{{Entries: []entry{{Key: "key", Value: "value"}}}}
	return shellQuoted(request)
}

// shellQuoted returns v as JSON that can stand between single quotes.
func shellQuoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // strings only
		return "{}"
	}
	return strings.ReplaceAll(string(text), "'", `\u0027`)
}
