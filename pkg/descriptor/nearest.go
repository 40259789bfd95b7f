package descriptor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Nearest is the rule with the fewest differences from a descriptor that no rule matches.
type Nearest struct {
	Rule *Rule  // nil in a domain of envoyproxy/ratelimit descriptors, and without rules
	Why  string // the differences, such as "key user missing; has key usr, which the rule does not name"
}

// NearestDomain returns the name of the domain that a mistyped name probably means, "" when none is
// close.
func (r *Rules) NearestDomain(name string) string {
	names := make([]string, 0, len(r.Domains()))
	for _, d := range r.Domains() {
		names = append(names, d.name)
	}
	return limiter.ClosestName(name, names)
}

// nearest finds the rule with the fewest differences. Of several, the one that names most keys of
// the descriptor wins, and then the first.
func (d *Domain) nearest(desc *Descriptor) Nearest {
	if d.tree != nil {
		return Nearest{Why: d.tree.miss(desc.Entries)}
	}
	if d.limits != nil {
		return Nearest{Why: "no limit has only conditions that are true, and variables that have values, for the call"}
	}
	v := d.view(desc.Entries, nil)
	var best Nearest
	least, most := 0, 0
	for _, r := range d.rules {
		if r.shadow {
			continue
		}
		found, named := r.differences(&v), r.named(&v)
		if best.Rule == nil || found.count < least || found.count == least && named > most {
			best, least, most = Nearest{Rule: r, Why: strings.Join(found.listed, "; ")}, found.count, named
		}
	}
	return best
}

// named counts the keys of the descriptor that the rule names.
func (r *Rule) named(v *view) int {
	n := 0
	for i := range r.patterns {
		if from, to := v.find(r.patterns[i].key); from < to {
			n++
		}
	}
	return n
}

// differences counts the reasons why a rule does not match, and lists the first of them. A
// descriptor may have thousands of entries, so only the listed reasons are put into words.
type differences struct {
	listed []string // maxListed at most
	count  int
}

func (d *differences) add(text func() string) {
	d.count++
	if len(d.listed) < maxListed {
		d.listed = append(d.listed, text())
	}
}

// differences finds all reasons why the rule does not match.
func (r *Rule) differences(v *view) differences {
	var all differences
	var missing []string
	for i := range r.patterns {
		p := &r.patterns[i]
		from, to := v.find(p.key)
		if from == to {
			if !p.optional {
				all.add(func() string { return fmt.Sprintf("key %s missing", plain(p.name)) })
			}
			missing = append(missing, p.name)
			continue
		}
		if _, ok := matchAny(p, v); !ok {
			all.add(func() string {
				return fmt.Sprintf("%s %s does not match %s", plain(p.name), clip(v.value(from)), p.describe())
			})
		}
	}
	for i := range v.entries {
		key := v.entries[i].Key
		if !r.open && !r.names(key) {
			all.add(func() string { return unnamed(key, missing) })
		}
	}
	return all
}

// unnamed says that a rule does not name a key, and suggests the closest of its missing keys.
func unnamed(key string, missing []string) string {
	text := fmt.Sprintf("has key %s, which the rule does not name", plain(key))
	if near := limiter.ClosestName(key, missing); near != "" {
		text += fmt.Sprintf(" (did you mean %s?)", plain(near))
	}
	return text
}

// maxListed is how many names or differences are listed for people.
const maxListed = 8

// miss says at which entry the tree has no way on.
func (t *tree) miss(entries []Entry) string {
	next := &t.root
	for i := range entries {
		e := &entries[i]
		b := next.find(e)
		switch {
		case b == nil && len(next.keys()) == 0:
			return fmt.Sprintf("entry %d, key %s, comes after the last descriptor of the file on this way", i+1, plain(e.Key))
		case b == nil && slices.Contains(next.keys(), e.Key):
			return fmt.Sprintf("entry %d: no descriptor of the file has %s with the value %s, and none has the key for every value", i+1, plain(e.Key), clip(e.Value))
		case b == nil:
			text := fmt.Sprintf("entry %d has key %s; there is %s", i+1, plain(e.Key), list(next.keys()))
			if near := limiter.ClosestName(e.Key, next.keys()); near != "" {
				text += fmt.Sprintf(" (did you mean %s?)", plain(near))
			}
			return text
		}
		next = &b.next
	}
	return "the entries end where the file has no limit; below there is " + list(next.keys())
}

// keys returns the keys of a level, each once, in alphabetical order.
func (l *level) keys() []string {
	keys := slices.Concat(slices.Collect(maps.Keys(l.any)), slices.Collect(maps.Keys(l.patterns)))
	for e := range l.exact {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// list lists names for people, the first few.
func list(names []string) string {
	shown := make([]string, 0, maxListed)
	for _, name := range names[:min(len(names), maxListed)] {
		shown = append(shown, plain(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
