package descriptor

import (
	"cmp"
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

// Example returns entries with which people can try a domain with the descriptors of an envoyproxy/ratelimit file: those
// of its first limit by name. nil = it has none, or is no such domain.
func (d *Domain) Example() []Entry {
	if d.tree == nil {
		return nil
	}
	return d.tree.root.example(nil)
}

func (l *level) example(way []Entry) []Entry {
	for _, e := range slices.SortedFunc(maps.Keys(l.exact), func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value)) }) {
		if found := l.exact[e].example(append(way, e)); found != nil {
			return found
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.patterns)) {
		for _, p := range l.patterns[key] {
			if found := p.branch.example(append(way, Entry{Key: key, Value: strings.ReplaceAll(p.pattern.text, "*", exampleValue)})); found != nil {
				return found
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.any)) {
		if found := l.any[key].example(append(way, Entry{Key: key, Value: exampleValue})); found != nil {
			return found
		}
	}
	return nil
}

// example returns the way to the branch, or to one below it, that has a limit.
func (b *branch) example(way []Entry) []Entry {
	if b.rule != nil && b.rule.leaf.quoted.Unit > 0 && !b.rule.leaf.blocked {
		return slices.Clone(way)
	}
	return b.next.example(way)
}
