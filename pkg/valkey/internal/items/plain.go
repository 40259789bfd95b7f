package items

import (
	"iter"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// plain returns the words of a write that plain.lua applies. It reports false for others, which items.lua applies.
// The words begin with plain and the serial number that the sender knows. The numbers of attributes follow: of those
// that are added to, and of those that are read. Those that are read have their names next, the serial number first,
// then the others that are added to, then those that are compared. The amounts that are added follow.
//
// The number of comparisons is next. Each has the place of its attribute, the operator and the value. The number of
// attributes that are added to above a floor is next. Each has its place, the name, the floor and the value. The number of
// attributes that are set is next. Those have names and values in turn, the id of the write first. The words end with
// those of [gains.added].
func (w *write) plain(g *gains) (words []string, ok bool) {
	if !w.isPlain(g) {
		return nil, false
	}
	const ofCondition, ofChange, fixed = 4, 4, 8 // words, at most
	words = make([]string, 0, fixed+ofCondition*len(w.Conditions)+ofChange*(len(w.Changes)+len(g.names)))
	words = append(words, "plain", w.image, "", "")
	names := len(words)
	for c := range w.changing(w.serial()) {
		words = append(words, c.Attr)
	}
	added := words[names:]
	reads := func(attr string) {
		if !slices.Contains(words[names:], attr) {
			words = append(words, attr)
		}
	}
	for i := range w.Conditions {
		reads(w.Conditions[i].Attr)
	}
	for c := range w.above() {
		reads(c.Attr)
	}
	read := words[names:]
	words[names-2], words[names-1] = strconv.Itoa(len(added)), strconv.Itoa(len(read))
	for c := range w.changing(w.serial()) {
		words = append(words, simple(c.Value))
	}
	words = append(words, strconv.Itoa(len(w.Conditions)))
	for i := range w.Conditions {
		c := &w.Conditions[i]
		words = append(words, strconv.Itoa(slices.Index(read, c.Attr)+1), c.Operator, simple(c.Value))
	}
	above := len(words)
	words = append(words, "")
	for c := range w.above() {
		words = append(words, strconv.Itoa(slices.Index(read, c.Attr)+1), c.Attr, simple(c.Floor), simple(c.Value))
	}
	words[above] = strconv.Itoa((len(words) - above) / 4)
	sets := len(words)
	words = append(words, "")
	for c := range w.changing(w.named()) {
		words = append(words, c.Attr, simple(c.Value))
	}
	words[sets] = strconv.Itoa((len(words) - sets) / 2)
	return g.added(words), true
}

// changing yields a change, and then the others of its kind, without those that are not stored; of nil none.
func (w *write) changing(first *schema.Change) iter.Seq[*schema.Change] {
	return func(yield func(*schema.Change) bool) {
		if first == nil || !yield(first) {
			return
		}
		for i := range w.Changes {
			if c := &w.Changes[i]; c != first && c.Kind == first.Kind && !isUncounted(c) && !yield(c) {
				return
			}
		}
	}
}

// above yields the changes that add above a floor.
func (w *write) above() iter.Seq[*schema.Change] {
	return w.changing(w.find(func(c *schema.Change) bool { return c.Kind == schema.AddAbove }))
}

// isPlain reports whether plain.lua applies a write. Such a write updates an item that is there. All its conditions are
// comparisons. It sets its id, and adds to the serial number. Its use is counted in an hour that is thought to be there.
func (w *write) isPlain(g *gains) bool {
	if w.Kind != schema.Update || w.OrNew || len(g.full) > 0 || !w.needs(schema.AttrEpoch) || w.named() == nil || w.serial() == nil {
		return false
	}
	for i := range w.Conditions {
		if c := &w.Conditions[i]; c.Kind != schema.Compare || !isSimple(c.Value) {
			return false
		}
	}
	for i := range w.Changes {
		if c := &w.Changes[i]; c.Kind == schema.Remove || !isSimple(c.Value) || w.movesEntry(c) {
			return false
		}
	}
	return true
}

// isSimple reports whether a value is no document and no set.
func isSimple(v types.AttributeValue) bool {
	switch v.(type) {
	case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberB:
		return true
	}
	return false
}

// simple returns the text of a simple value.
func simple(v types.AttributeValue) string {
	s, _ := encode(v) // which fails for no such value
	return s
}

// isID reports whether a value is the id of a write, which is binary.
func isID(v types.AttributeValue) bool {
	_, ok := v.(*types.AttributeValueMemberB)
	return ok
}

// find returns the first change of some; nil = there is none.
func (w *write) find(is func(*schema.Change) bool) *schema.Change {
	for i := range w.Changes {
		if c := &w.Changes[i]; is(c) {
			return c
		}
	}
	return nil
}

// named returns the change that sets the id of the write; nil = it has none.
func (w *write) named() *schema.Change {
	return w.find(func(c *schema.Change) bool { return c.Kind == schema.Set && isID(c.Value) })
}

// serial returns the change that adds to the serial number; nil = there is none.
func (w *write) serial() *schema.Change {
	return w.find(func(c *schema.Change) bool { return c.Kind == schema.Add && c.Attr == schema.AttrSerial })
}

// id returns the text of the id of the write; "" = it has none.
func (w *write) id() string {
	if c := w.named(); c != nil {
		return simple(c.Value)
	}
	return ""
}

// movesEntry reports whether an attribute is changed by which a sorted set leads to the item. That of the items that
// expire leads to one with another time, too.
func (w *write) movesEntry(c *schema.Change) bool {
	stays := c.Attr == schema.AttrTTL && (c.Kind == schema.Set || c.Kind == schema.AddAbove) && w.needs(c.Attr)
	return slices.Contains(entryNames, c.Attr) && !stays
}

// needs reports whether a condition does not hold without an attribute.
func (w *write) needs(attr string) bool {
	return slices.ContainsFunc(w.Conditions, func(c schema.Condition) bool {
		return c.Attr == attr && (c.Kind == schema.Present || c.Kind == schema.Compare && c.Operator != "<>")
	})
}
