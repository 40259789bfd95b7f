package descriptor

import (
	"maps"
	"slices"
	"strings"
)

// exampleValue stands for any value in an example.
const exampleValue = "demo"

// Example returns entries with which people can try a rule. They match it unless it has a regular
// expression, or an earlier rule matches them too.
func (r *Rule) Example() []Entry {
	var entries []Entry
	for i := range r.patterns {
		p := &r.patterns[i]
		if p.optional {
			continue
		}
		value := exampleValue
		switch p.kind {
		case exactValue, regexValue:
			value = p.text
		case globValue:
			value = strings.ReplaceAll(p.text, "*", exampleValue)
		case cidrValue:
			value = p.blocks[0].Addr().String()
		case listValue:
			value = p.list.example()
		case anyValue:
		}
		entries = append(entries, Entry{Key: p.name, Value: value})
	}
	return entries
}

// example returns a value that one of the texts matches.
func (l *values) example() string {
	if len(l.names) > 0 {
		return slices.Min(slices.Collect(maps.Keys(l.names)))
	}
	return strings.ReplaceAll(l.patterns[0].text, "*", exampleValue)
}
