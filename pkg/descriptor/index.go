package descriptor

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
)

// maxOptional is the most optional keys of a rule that the index spells out; each doubles the
// rule's places in it. It finds rules with more optional keys by the keys that they require.
const maxOptional = 3

// index finds the rules that may match a descriptor, without a comparison with each. It is a
// filter: every rule that it finds is compared, so it must only never miss one.
//
// It first tells rules apart by their sets of keys. For a closed rule the descriptor must have
// exactly these keys, for an open one at least these. Each set has tables, one for each combination
// of fixed parts of the values: the whole value, its first n bytes, or nothing. A table finds a
// rule by one hash of the fixed parts. So the time depends on the number of such combinations, and
// not on the number of rules.
type index struct {
	seed   maphash.Seed
	closed map[uint64]*tables // by hash of the set of keys
	open   *node              // root of a tree of sets of keys, in order of keys
}

// node is one set of keys in the tree: the keys on the way to it.
type node struct {
	tables   tables
	children map[keyID]*node
	least    int // smallest order of a rule at or below the node
}

// tables are in order of their smallest rule.
type tables []*table

// table has the rules with the same combination of fixed parts.
type table struct {
	fixed   []fixedPart
	buckets buckets // by hash of the fixed parts
	used    int     // buckets that are not free
	least   int     // smallest order of a rule in the table
}

// fixedPart says which part of a key's value is fixed.
type fixedPart struct {
	key    keyID
	whole  bool      // the whole value; otherwise its first length bytes
	length int       // of a whole value: the longest
	last   [4]uint64 // the bytes that fixed texts end with, as bits
}

// newIndex indexes the rules, which are in order.
func newIndex(seed maphash.Seed, rules []*Rule) *index {
	x := &index{seed: seed, closed: map[uint64]*tables{}}
	for _, r := range rules {
		x.add(r)
	}
	return x
}

// add adds a rule whose order is above that of all rules in the index.
func (x *index) add(r *Rule) {
	var required, optional []*pattern
	for i := range r.patterns {
		if p := &r.patterns[i]; p.optional {
			optional = append(optional, p)
		} else {
			required = append(required, p)
		}
	}
	if r.open || len(optional) > maxOptional {
		for _, keys := range spelled(required) {
			x.addOpen(r, keys)
		}
		return
	}
	for set := range 1 << len(optional) {
		keys := slices.Clone(required)
		for i, p := range optional {
			if set>>i&1 == 1 {
				keys = append(keys, p)
			}
		}
		for _, keys := range spelled(keys) {
			x.addClosed(r, keys)
		}
	}
}

// maxSpelled is the most places of a rule for the values of its lists. The index finds rules with longer
// lists by their other keys.
const maxSpelled = 64

// spelled returns the patterns with each combination of the exact values of lists. Lists with stars stay,
// and so do those beyond [maxSpelled].
func spelled(patterns []*pattern) [][]*pattern {
	all := [][]*pattern{slices.Clone(patterns)}
	for i, p := range patterns {
		if p.kind != listValue || len(p.list.patterns) > 0 || len(all)*len(p.list.names) > maxSpelled {
			continue
		}
		var next [][]*pattern
		for _, name := range slices.Sorted(maps.Keys(p.list.names)) {
			for _, keys := range all {
				keys = slices.Clone(keys)
				keys[i] = &pattern{key: p.key, kind: exactValue, text: name, compiled: p.compiled}
				next = append(next, keys)
			}
		}
		all = next
	}
	return all
}

func (x *index) addClosed(r *Rule, patterns []*pattern) {
	var set uint64
	for _, p := range patterns {
		set += keyHash(p.key)
	}
	if x.closed[set] == nil {
		x.closed[set] = new(tables)
	}
	x.closed[set].add(x.seed, r, patterns)
}

func (x *index) addOpen(r *Rule, patterns []*pattern) {
	if x.open == nil {
		x.open = &node{least: r.order}
	}
	n := x.open
	for _, p := range patterns {
		child := n.children[p.key]
		if child == nil {
			child = &node{least: r.order}
			if n.children == nil {
				n.children = map[keyID]*node{}
			}
			n.children[p.key] = child
		}
		n = child
	}
	n.tables.add(x.seed, r, patterns)
}

func (ts *tables) add(seed maphash.Seed, r *Rule, patterns []*pattern) {
	var fixed []fixedPart
	var hash uint64
	slices.SortFunc(patterns, func(a, b *pattern) int { return cmp.Compare(a.key, b.key) })
	for _, p := range patterns {
		text, whole := p.prefix()
		if text == "" && !whole {
			continue
		}
		f := fixedPart{key: p.key, whole: whole, length: len(text)}
		if text != "" {
			c := text[len(text)-1]
			f.last[c>>6] |= 1 << (c & 63)
		}
		fixed = append(fixed, f)
		hash = mix(hash, maphash.String(seed, text))
	}
	t := ts.find(fixed)
	if t == nil {
		t = &table{fixed: fixed, buckets: make(buckets, 2), least: r.order}
		*ts = append(*ts, t)
	}
	for i := range fixed {
		t.fixed[i].merge(&fixed[i])
	}
	t.buckets.add(hash, r, &t.used)
}

func (ts *tables) find(fixed []fixedPart) *table {
	same := func(a, b fixedPart) bool {
		return a.key == b.key && a.whole == b.whole && (a.whole || a.length == b.length)
	}
	for _, t := range *ts {
		if slices.EqualFunc(t.fixed, fixed, same) {
			return t
		}
	}
	return nil
}

// merge adds the values that another fixed part of the same shape allows.
func (f *fixedPart) merge(other *fixedPart) {
	f.length = max(f.length, other.length)
	for i, bits := range other.last {
		f.last[i] |= bits
	}
}

// take returns the fixed part of a value, and false when it surely is not in the table. Prefixes
// mostly end in a separator. A check of the last byte therefore spares most look-ups in tables of
// other lengths.
func (f *fixedPart) take(value string) (string, bool) {
	if f.whole {
		if len(value) > f.length {
			return "", false
		}
	} else {
		if len(value) < f.length {
			return "", false
		}
		value = value[:f.length]
	}
	if value == "" {
		return "", true
	}
	c := value[len(value)-1]
	return value, f.last[c>>6]>>(c&63)&1 == 1
}
