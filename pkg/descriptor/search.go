package descriptor

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// search is one walk through an index. The view is a separate argument: as a field it would be
// allocated on the heap.
type search struct {
	index *index
	limit int     // only rules of a smaller order count
	found *Rule   // the first of them that matches
	every bool    // collect all that match, in all
	all   []*Rule // the rules collected for every, in no order

	hidden *Rule // not nil: search for rules that cover it, not for those that match
	left   int   // how many more rules may be compared with it
}

// run walks the index.
func (s *search) run(v *view) {
	if set, ok := v.keySet(); ok {
		if ts := s.index.closed[set]; ts != nil {
			s.tables(v, *ts)
		}
	}
	if s.index.open != nil {
		s.node(v, s.index.open, 0)
	}
}

// node searches a set of keys that the view has, and the larger sets below it that the view has
// too. These add keys from the view's i-th on.
func (s *search) node(v *view, n *node, i int) {
	if n.least >= s.limit {
		return
	}
	s.tables(v, n.tables)
	if len(n.children) == 0 {
		return
	}
	for keys := v.keys; i < len(keys) && keys[i].id != unknownKey; {
		id := keys[i].id
		for i < len(keys) && keys[i].id == id {
			i++
		}
		if child := n.children[id]; child != nil {
			s.node(v, child, i)
		}
	}
}

func (s *search) tables(v *view, ts tables) {
	for _, t := range ts {
		if t.least >= s.limit {
			return
		}
		s.table(v, t, 0, 0)
	}
}

// table looks up every combination of the values of the table's keys, from the i-th fixed part on.
// A descriptor without repeated keys has one combination.
func (s *search) table(v *view, t *table, i int, hash uint64) {
	if i == len(t.fixed) {
		s.bucket(v, t.buckets.find(hash))
		return
	}
	f := &t.fixed[i]
	from, to := v.find(f.key)
	for ; from < to; from++ {
		if text, ok := f.take(v.value(from)); ok {
			s.table(v, t, i+1, mix(hash, maphash.String(s.index.seed, text)))
		}
	}
}

func (s *search) bucket(v *view, b *bucket) {
	if b.first == nil || s.rule(v, b.first) {
		return
	}
	for _, r := range b.more {
		if s.rule(v, r) {
			return
		}
	}
}

// rule compares one rule with the view, and reports whether no later rule can count.
func (s *search) rule(v *view, r *Rule) (done bool) {
	switch {
	case r.order >= s.limit:
		return true
	case s.hidden != nil:
		return s.cover(r)
	case !r.matches(v):
		return false
	case s.every:
		s.all = append(s.all, r)
		return false
	default:
		s.found, s.limit = r, r.order
		return true
	}
}

// cover compares one rule with the hidden one. Like rule it reports whether no later rule can
// count.
func (s *search) cover(r *Rule) (done bool) {
	if s.left == 0 {
		return true
	}
	s.left--
	if !r.covers(s.hidden) {
		return false
	}
	s.found, s.limit = r, r.order
	return true
}

// view returns the view of entries. It uses buf while there is room.
func (d *Domain) view(entries []Entry, buf []keyRef) view {
	for i := range entries {
		id, ok := d.keys[entries[i].Key]
		if !ok {
			id = unknownKey
		}
		buf = append(buf, keyRef{id: id, entry: i})
	}
	if len(buf) > inlineKeys {
		return view{entries: entries, keys: sortMany(buf)}
	}
	for i := 1; i < len(buf); i++ {
		for j := i; j > 0 && buf[j].id < buf[j-1].id; j-- {
			buf[j], buf[j-1] = buf[j-1], buf[j]
		}
	}
	return view{entries: entries, keys: buf}
}

// Match returns the first rule, in the order of the file, that enforces its limits and matches the
// descriptor; nil when none does.
func (d *Domain) Match(desc *Descriptor) *Rule {
	if d.tree != nil {
		if r := d.tree.walk(desc.Entries); r != nil && !r.shadow {
			return r
		}
		return nil
	}
	if d.limits != nil {
		return nil // its limits look at calls
	}
	var buf [inlineKeys]keyRef
	v := d.view(desc.Entries, buf[:0])
	return d.first(&v)
}

// first returns the first enforcing rule that matches.
func (d *Domain) first(v *view) *Rule {
	if v.manyCombinations() {
		for _, r := range d.rules {
			if !r.shadow && r.matches(v) {
				return r
			}
		}
		return nil
	}
	s := search{index: d.enforcing, limit: len(d.rules)}
	s.run(v)
	return s.found
}

// shadowsBefore appends to rules the shadow rules that match, in order: those before the winner, or
// all when there is no winner.
func (d *Domain) shadowsBefore(winner *Rule, v *view, rules []*Rule) []*Rule {
	if d.shadows == nil {
		return rules
	}
	limit := len(d.rules)
	if winner != nil {
		limit = winner.order
	}
	if v.manyCombinations() {
		for _, r := range d.rules[:limit] {
			if r.shadow && r.matches(v) {
				rules = append(rules, r)
			}
		}
		return rules
	}
	s := search{index: d.shadows, limit: limit, every: true, all: rules}
	s.run(v)
	slices.SortFunc(s.all, func(a, b *Rule) int { return cmp.Compare(a.order, b.order) })
	return slices.Compact(s.all) // equal values of a repeated key find a rule more than once
}
