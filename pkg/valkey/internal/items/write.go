package items

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// write is a conditional write of one item, and the rest that its words need.
type write struct {
	*schema.ItemWrite

	image    string // of the item afterwards that is wanted: noImage, wholeImage, or the serial number that the sender knows
	other    *write // that is applied where the condition does not hold; nil = none
	claimant string // partition key of the bucket that claims a record, see claim.go; "" = the write is no claim
	meter    meter
}

// The images that are not those of a serial number.
const (
	noImage    = ""
	wholeImage = "all"
)

// entryNames are the attributes that sorted sets lead to an item by, see places.lua, and by which it expires.
var entryNames = []string{
	schema.AttrSK, schema.AttrTTL, schema.AttrGSI1PK, schema.AttrGSI1SK, schema.AttrGSI2PK, schema.AttrGSI2SK,
	schema.AttrGSI3PK, schema.AttrGSI3SK, schema.AttrGSI4PK, schema.AttrGSI4SK,
}

// writeOf returns a write whose use is counted.
func writeOf(of *schema.ItemWrite) (write, error) {
	w := write{ItemWrite: of, image: noImage}
	if of.OrUpdate != nil {
		w.other = &write{ItemWrite: of.OrUpdate, image: wholeImage}
	}
	for i := range of.Conditions {
		if c := &of.Conditions[i]; c.Value != nil && !isComparison(c.Operator) {
			return w, fmt.Errorf("the condition of %s has the operator %q", c.Attr, c.Operator)
		}
	}
	for i := range of.Changes {
		switch c := &of.Changes[i]; c.Kind {
		case schema.Set:
			w.meter.set(c.Attr, c.Value)
		case schema.Add:
			w.meter.adds(c.Attr, c.Value)
		case schema.Remove, schema.AddAbove:
		}
	}
	for attr, v := range of.Item {
		w.meter.set(attr, v)
		w.meter.adds(attr, v)
	}
	return w, nil
}

// answered has the write answered with the image that it asks for. A part of a transaction has none: it is applied by
// then, so nothing in the reply may make it fail.
func (w *write) answered() {
	switch {
	case w.Kind != schema.Update || w.Answer == schema.AnswerNothing:
	case w.Known != 0:
		w.image = strconv.FormatInt(w.Known, 10)
	default:
		w.image = wholeImage
	}
}

// isComparison reports whether an operator compares an attribute with a value.
func isComparison(op string) bool {
	switch op {
	case "=", "<>", "<", "<=", ">", ">=":
		return true
	}
	return false
}

// itemKey returns the key of the item. A claim has that of its record, but for the sort key.
func (w *write) itemKey() schema.Key {
	if w.claimant != "" {
		return schema.Key{PK: w.Key.PK, SK: skClaim}
	}
	return w.Key
}

// exact reports whether the write is one of those that are few and that nothing makes good: all but takes,
// charges and refunds, and new buckets.
func (w *write) exact() bool {
	if !schema.IsBucket(w.itemKey()) || w.Kind == schema.Delete {
		return true
	}
	return w.Kind == schema.Update && slices.ContainsFunc(w.Conditions, func(c schema.Condition) bool {
		return c.Kind == schema.Compare && c.Attr == schema.AttrSerial && c.Operator == "="
	})
}

// makesNew reports whether the write is a put where there is no item.
func (w *write) makesNew() bool {
	return w.Kind == schema.Put && !w.OrNew && len(w.Conditions) == 1 && w.Conditions[0].Kind == schema.Absent && w.Conditions[0].Attr == schema.AttrPK
}

// words appends the words of the write, as items.lua reads them. The kind is first, then the image that is wanted, and the
// keys. The number of attributes to be read follows, and those. The condition is next. The words end with the attributes that
// are set, added to, removed, and added to above a floor, in that order, after their four numbers. The first two kinds have
// values, the last one floors and values. Behind a question mark are two writes: the first whose condition holds is applied.
func (w *write) words(to []string) ([]string, error) {
	if w.other == nil {
		return w.one(to)
	}
	to, err := w.one(append(to, "?"))
	if err != nil {
		return nil, err
	}
	return w.other.one(to)
}

// one appends the words of the write without those of the other one.
func (w *write) one(to []string) ([]string, error) {
	kind := [...]string{schema.Update: "U", schema.Put: "P", schema.Delete: "D"}[w.Kind]
	reads, k := w.reads(), w.itemKey()
	to = append(to, kind, w.image, "S"+k.PK, "S"+k.SK, strconv.Itoa(len(reads)))
	to = append(to, reads...)
	to, err := w.condition(to)
	if err != nil {
		return nil, err
	}
	c, err := w.changes()
	if err != nil {
		return nil, err
	}
	to = append(to, strconv.Itoa(len(c.set)/2), strconv.Itoa(len(c.added)/2), strconv.Itoa(len(c.removed)), strconv.Itoa(len(c.raised)/3))
	return append(append(append(append(to, c.set...), c.added...), c.removed...), c.raised...), nil
}

// reads returns the attributes that are read: the partition key, those that the conditions and the changes are about,
// and those that entries of sorted sets may follow.
func (w *write) reads() []string {
	all := append(make([]string, 0, 2+len(w.Conditions)+len(w.Changes)+len(entryNames)), schema.AttrPK)
	moves := w.Kind == schema.Delete || w.Kind == schema.Put && !w.makesNew()
	add := func(attr string) {
		if !slices.Contains(all, attr) {
			all = append(all, attr)
		}
	}
	for i := range w.Conditions {
		add(w.Conditions[i].Attr)
	}
	for i := range w.Changes {
		if c := &w.Changes[i]; !isUncounted(c) {
			add(c.Attr)
			moves = moves || w.movesEntry(c)
		}
	}
	if moves {
		for _, attr := range entryNames {
			add(attr)
		}
	}
	if w.claimant != "" {
		add(attrClaimant)
	}
	return all
}

// condition appends the words of all conditions, in prefix notation: an operator, then its operands. The condition 1
// always holds.
func (w *write) condition(to []string) ([]string, error) {
	if w.claimant != "" {
		to = append(to, "|", "2", "=", attrClaimant, "S"+w.claimant)
	}
	if w.OrNew {
		to = append(to, "|", "2", "!", schema.AttrPK)
	}
	switch n := len(w.Conditions); {
	case n == 0:
		to = append(to, "1")
	case n > 1:
		to = append(to, "&", strconv.Itoa(n))
	}
	for i := range w.Conditions {
		c := &w.Conditions[i]
		switch c.Kind {
		case schema.Absent:
			to = append(to, "!", c.Attr)
		case schema.Present:
			to = append(to, "E", c.Attr)
		case schema.AbsentOrCompare:
			to = append(to, "|", "2", "!", c.Attr)
			fallthrough
		case schema.Compare:
			v, err := encode(c.Value)
			if err != nil {
				return nil, fmt.Errorf("the condition of %q: %w", c.Attr, err)
			}
			to = append(to, c.Operator, c.Attr, v)
		}
	}
	return to, nil
}

// changes are the words of the changes of a write.
type changes struct {
	set, added []string // names and values in turn
	removed    []string
	raised     []string // names, floors and values in turn
}

// changes returns those of the write.
func (w *write) changes() (to changes, err error) {
	if w.Kind == schema.Put {
		to.set, err = w.put()
		return to, err
	}
	for i := range w.Changes {
		c := &w.Changes[i]
		if c.Kind == schema.Remove {
			to.removed = append(to.removed, c.Attr)
			continue
		}
		v, err := encode(c.Value)
		switch {
		case err != nil:
			return to, fmt.Errorf("the attribute %q: %w", c.Attr, err)
		case c.Kind == schema.Set:
			to.set = append(to.set, c.Attr, v)
		case c.Kind == schema.AddAbove:
			floor, err := encode(c.Floor)
			if err != nil {
				return to, fmt.Errorf("the floor of %q: %w", c.Attr, err)
			}
			to.raised = append(to.raised, c.Attr, floor, v)
		case !isUncounted(c):
			to.added = append(to.added, c.Attr, v)
		}
	}
	return to, nil
}

// put returns the attributes of a put, names and values in turn.
func (w *write) put() ([]string, error) {
	all, err := pairs(w.Item)
	if err != nil {
		return nil, err
	}
	set := all[:0]
	for i := 0; i < len(all); i += 2 {
		if all[i] == schema.AttrSK {
			all[i+1] = "S" + w.itemKey().SK
		}
		if !uncounted(all[i]) {
			set = append(set, all[i], all[i+1])
		}
	}
	if w.claimant != "" {
		set = append(set, attrClaimant, "S"+w.claimant)
	}
	return set, nil
}

// pairs returns names and encoded values in turn, texts last: a server seeks an attribute from the front, and takes are
// about numbers.
func pairs(of attributes) ([]string, error) {
	all := make([]string, 0, 2*len(of))
	var texts []string
	for name, v := range of {
		s, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("the attribute %q: %w", name, err)
		}
		if s[0] == 'S' {
			texts = append(texts, name, s)
		} else {
			all = append(all, name, s)
		}
	}
	return append(all, texts...), nil
}
