package descriptor

import (
	"cmp"
	"math"
	"slices"
)

const (
	// inlineKeys is how many entries a descriptor may have for its view to need
	// no memory from the heap.
	inlineKeys = 16
	// maxCombinations is how many combinations of the values of repeated keys are
	// looked up in an index; for a descriptor with more every rule is asked.
	maxCombinations = 64
	// maxRepeats is how many values of one key are looked at; more would let a
	// message cost as much as its length times the number of rules.
	maxRepeats = 64
)

// keyID is the number of a key that a domain's rules name. Keys that none names
// share unknownKey.
type keyID uint32

const unknownKey keyID = math.MaxUint32

// keyRef is an entry of a descriptor, by the number of its key.
type keyRef struct {
	id    keyID
	entry int
}

// view is a descriptor as matching wants it: its entries in order of the numbers
// of their keys, those of one key in the order of the descriptor.
type view struct {
	entries []Entry
	keys    []keyRef
}

// view returns the view of entries, in buf while it suffices.
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

// sortMany puts many entries in order, and cuts what is there of one key.
func sortMany(keys []keyRef) []keyRef {
	slices.SortStableFunc(keys, func(a, b keyRef) int { return cmp.Compare(a.id, b.id) })
	kept, repeats := keys[:0], 0
	for i, k := range keys {
		if i > 0 && kept[len(kept)-1].id == k.id {
			repeats++
		} else {
			repeats = 0
		}
		if repeats < maxRepeats {
			kept = append(kept, k)
		}
	}
	return kept
}

// value returns the value of the i-th entry in order.
func (v *view) value(i int) string { return v.entries[v.keys[i].entry].Value }

// find returns where the entries of a key stand in order; none when from is to.
func (v *view) find(id keyID) (from, to int) {
	if len(v.keys) > inlineKeys {
		from, _ = slices.BinarySearchFunc(v.keys, id, func(k keyRef, id keyID) int { return cmp.Compare(k.id, id) })
	} else {
		for from < len(v.keys) && v.keys[from].id < id {
			from++
		}
	}
	to = from
	for to < len(v.keys) && v.keys[to].id == id {
		to++
	}
	return from, to
}

// keySet returns the hash of the set of keys, and false when one of them is
// named by no rule, so that only open rules can match.
func (v *view) keySet() (uint64, bool) {
	var set uint64
	for i, k := range v.keys {
		if k.id == unknownKey {
			return 0, false
		}
		if i == 0 || v.keys[i-1].id != k.id {
			set += keyHash(k.id)
		}
	}
	return set, true
}

// manyCombinations reports whether the values of repeated keys combine in more
// ways than are worth looking up.
func (v *view) manyCombinations() bool {
	combinations, run := 1, 0
	for i, k := range v.keys {
		if k.id == unknownKey {
			break
		}
		if run++; i+1 < len(v.keys) && v.keys[i+1].id == k.id {
			continue
		}
		if combinations *= run; combinations > maxCombinations {
			return true
		}
		run = 0
	}
	return false
}

// matches reports whether the rule matches: each of its keys is there, with a
// value that its pattern matches (an optional one may be absent), and, unless
// the rule is open, no other key is.
func (r *Rule) matches(v *view) bool {
	i, n := 0, len(v.keys)
	for j := range r.patterns {
		p := &r.patterns[j]
		for i < n && v.keys[i].id < p.key {
			if !r.open {
				return false
			}
			i++
		}
		there, ok := false, false
		for ; i < n && v.keys[i].id == p.key; i++ {
			there = true
			ok = ok || p.matches(v.value(i))
		}
		if !ok && (there || !p.optional) {
			return false
		}
	}
	return r.open || i == n
}

// Match returns the first rule, in the order of the file, that enforces its
// limits and matches the descriptor; nil when none does.
func (d *Domain) Match(desc *Descriptor) *Rule {
	if d.tree != nil {
		if r := d.tree.walk(desc.Entries); r != nil && !r.shadow {
			return r
		}
		return nil
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

// shadowsBefore appends to rules the shadow rules that match, in order: those
// before the winner, or all when there is none.
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
