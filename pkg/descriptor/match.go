package descriptor

import (
	"cmp"
	"math"
	"slices"
)

const (
	// inlineKeys is the most entries of a descriptor whose view needs no memory from the heap.
	inlineKeys = 16
	// maxCombinations is the most combinations of the values of repeated keys that are looked up in
	// an index. For a descriptor with more, every rule is compared.
	maxCombinations = 64
	// maxRepeats is the most values of one key that are compared. With more, a message could cost
	// its length times the number of rules.
	maxRepeats = 64
)

// keyID is the number of a key that the rules of a domain name. All other keys are unknownKey.
type keyID uint32

const unknownKey keyID = math.MaxUint32

// keyRef is an entry of a descriptor, by the number of its key.
type keyRef struct {
	id    keyID
	entry int
}

// view is a descriptor in the form for matching: its entries by the number of their key. Entries of
// one key keep the order of the descriptor.
type view struct {
	entries []Entry
	keys    []keyRef
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

// sortMany sorts many entries, and cuts those of one key to the first maxRepeats.
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

// value returns the value of the i-th entry of the view.
func (v *view) value(i int) string { return v.entries[v.keys[i].entry].Value }

// find returns the range of the entries of a key in the view. It is empty when from equals to.
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

// keySet returns the hash of the set of keys. It returns false when no rule names one of them, so
// that only open rules can match.
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

// manyCombinations reports whether the values of repeated keys have more than maxCombinations
// combinations.
func (v *view) manyCombinations() bool {
	combinations, run := 1, 0
	for i, k := range v.keys {
		if k.id == unknownKey {
			break
		}
		run++
		if i+1 < len(v.keys) && v.keys[i+1].id == k.id {
			continue
		}
		combinations *= run
		if combinations > maxCombinations {
			return true
		}
		run = 0
	}
	return false
}

// matches reports whether the rule matches. Each of its keys must be there, with a value that its
// pattern matches; only an optional key may be absent. Unless the rule is open, there must be no
// other key.
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

// Match returns the first rule, in the order of the file, that enforces its limits and matches the
// descriptor; nil when none does.
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
