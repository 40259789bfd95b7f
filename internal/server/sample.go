package server

import (
	"encoding/json"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// sample returns the JSON of a request that the configuration has a limit for,
// to be tried by a new user: one descriptor of the first rule that takes something. "" = none is known.
func sample(rules *descriptor.Rules) string {
	for _, d := range rules.Domains() {
		if d.OfFile() && takes(rules, d, d.Example()) {
			return requestJSON(d, d.Example())
		}
		for _, r := range d.Rules() {
			if example := r.Example(); takes(rules, d, example) {
				return requestJSON(d, example)
			}
		}
	}
	return ""
}

// takes reports whether a call with the entries takes something.
func takes(rules *descriptor.Rules, d *descriptor.Domain, entries []descriptor.Entry) bool {
	if len(entries) == 0 {
		return false
	}
	var plan descriptor.Plan
	rules.Plan(&descriptor.Call{Domain: d.Name(), Descriptors: []descriptor.Descriptor{{Entries: entries}}}, &plan)
	return plan.Outcomes[0].Kind == descriptor.Takes
}

func requestJSON(d *descriptor.Domain, entries []descriptor.Entry) string {
	type entry struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	type descriptorJSON struct {
		Entries []entry `json:"entries"`
	}
	var one descriptorJSON
	for _, e := range entries {
		one.Entries = append(one.Entries, entry(e))
	}
	return shellQuoted(struct {
		Domain      string           `json:"domain"`
		Descriptors []descriptorJSON `json:"descriptors"`
	}{d.Name(), []descriptorJSON{one}})
}

// shellQuoted returns v as JSON that can stand between single quotes.
func shellQuoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // strings only
		return "{}"
	}
	return strings.ReplaceAll(string(text), "'", `\u0027`)
}
