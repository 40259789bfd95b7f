package items

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// plain returns the words of a write that plain.lua applies. It reports false for others, which items.lua applies.
// The words begin with plain and the serial number that the sender knows. The numbers of attributes follow: of those
// that are added to, and of those that are read. Those that are read have their names next, the serial number first,
// then the others that are added to, then those that are compared. The amounts that are added follow.
//
// The number of comparisons is next. Each has the place of its attribute, the operator and the value. The number of
// attributes that are set is next. Those have names and values in turn, the id of the write first. The words end with
// those of [gains.added].
func (w *write) plain(g *gains) (words []string, ok bool) {
	a := &w.actions
	comparisons, ok := w.isPlain(g)
	if !ok {
		return nil, false
	}
	const fixed = 8 // counts, and the first words
	words = make([]string, 0, fixed+len(a.added)+2*len(comparisons)+len(a.set)+2*len(g.names))
	words = append(words, "plain", w.image, strconv.Itoa(len(a.added)/2), "")
	first := len(words)
	for i := 0; i < len(a.added); i += 2 {
		words = append(words, a.added[i])
	}
	for i := 0; i < len(comparisons); i += 3 {
		if name := comparisons[i+1]; !slices.Contains(words[first:], name) {
			words = append(words, name)
		}
	}
	read := words[first:]
	words[first-1] = strconv.Itoa(len(read))
	for i := 0; i < len(a.added); i += 2 {
		words = append(words, a.added[i+1])
	}
	words = append(words, strconv.Itoa(len(comparisons)/3))
	for i := 0; i < len(comparisons); i += 3 {
		words = append(words, strconv.Itoa(slices.Index(read, comparisons[i+1])+1), comparisons[i], comparisons[i+2])
	}
	words = append(words, strconv.Itoa(len(a.set)/2))
	words = append(words, a.set...)
	return g.added(words), true
}

// isPlain reports whether plain.lua applies a write, and returns its comparisons. Such a write updates an item that is
// there. All its comparisons have to hold. It sets and adds. Its use is counted in an hour that is thought to be there.
func (w *write) isPlain(g *gains) (comparisons []string, ok bool) {
	a := &w.actions
	if w.kind != "U" || len(a.lessened) > 0 || len(a.removed) > 0 || len(g.full) > 0 {
		return nil, false
	}
	comparisons, ok = conjunction(w.condition)
	if !ok || !needs(comparisons, schema.AttrEpoch) || movesEntries(a.set, comparisons) || movesEntries(a.added, nil) {
		return nil, false
	}
	isSerial := func(name, _ string) bool { return name == schema.AttrSerial }
	return comparisons, toFront(a.added, isSerial) && toFront(a.set, isID)
}

// isID reports whether an attribute is the id of a write, which is binary.
func isID(_, value string) bool { return strings.HasPrefix(value, "B") }

// id returns the id of a write that is plain; "" = it sets nothing.
func (w *write) id() string {
	if len(w.actions.set) == 0 {
		return ""
	}
	return w.actions.set[1]
}

// toFront puts a name with its value before the others, and reports whether it is among them.
func toFront(of []string, is func(name, value string) bool) bool {
	for i := 0; i < len(of); i += 2 {
		if is(of[i], of[i+1]) {
			of[0], of[1], of[i], of[i+1] = of[i], of[i+1], of[0], of[1]
			return true
		}
	}
	return false
}

// movesEntries reports whether an attribute is set, by names and values in turn, by which a sorted set leads to the
// item. That of the items that expire leads to one with another time, too.
func movesEntries(set, comparisons []string) bool {
	for i := 0; i < len(set); i += 2 {
		if name := set[i]; slices.Contains(entryNames, name) && (name != schema.AttrTTL || !needs(comparisons, name)) {
			return true
		}
	}
	return false
}

// needs reports whether a comparison does not hold without an attribute.
func needs(comparisons []string, name string) bool {
	for i := 0; i < len(comparisons); i += 3 {
		if comparisons[i] != "<>" && comparisons[i+1] == name {
			return true
		}
	}
	return false
}

// conjunction returns the words of the comparisons of a condition that has no other parts: the operator, the
// attribute and the value of each.
func conjunction(condition []string) (comparisons []string, ok bool) {
	if condition[0] == "&" {
		condition = condition[2:]
	}
	if len(condition)%3 != 0 {
		return nil, false
	}
	for i := 0; i < len(condition); i += 3 {
		if !isComparison(condition[i]) {
			return nil, false
		}
	}
	return condition, true
}
