package schema

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// ItemWrite is a conditional write of one item. A server applies it whole, or not at all. [NewUpdate], [NewPut],
// [PutNew], [PutOrReplace] and [NewDelete] make one; its methods add conditions and changes.
type ItemWrite struct {
	Kind WriteKind
	Key  Key
	Item map[string]types.AttributeValue // that a put leaves, with its key
	// Conditions have to hold together.
	Conditions []Condition
	// OrNew says that the conditions have to hold only of an item that is there.
	OrNew   bool
	Changes []Change // of an update
	// Answer is the part of the item that the reply has, of an update that is applied by itself.
	Answer Answer
	// Known is the serial number of the item that the sender knows; 0 = none. A server that runs scripts leaves the
	// attributes out of its reply if that item was updated. Then its client has seen that the reply is that to the call.
	Known int64
	// Shows says that a refusal shows the item as it is.
	Shows bool
	// OrUpdate is applied in the place of a put whose conditions do not hold; nil = nothing is. The reply has the item
	// then. Only a server that runs scripts applies it.
	OrUpdate *ItemWrite
}

// WriteKind is the kind of a write.
type WriteKind uint8

// The kinds of writes.
const (
	Update WriteKind = iota // of an item, or of a new one that has its key alone
	Put                     // of an item in the place of another one, or of none
	Delete                  // of an item that may be absent
)

// Answer is the part of an item that a reply has.
type Answer uint8

// The answers.
const (
	AnswerNothing Answer = iota
	AnswerItem           // as the write leaves it
	AnswerUpdated        // the attributes that the write changed
)

// Condition is one of an attribute.
type Condition struct {
	Kind     ConditionKind
	Attr     string
	Operator string // of a comparison: "=", "<>", "<", "<=", ">" or ">="
	Value    types.AttributeValue
}

// ConditionKind is the kind of a condition.
type ConditionKind uint8

// The kinds of conditions.
const (
	Compare         ConditionKind = iota // of an attribute and a value; only "<>" holds for an attribute that is absent
	Absent                               // there is no such attribute
	Present                              // there is such an attribute
	AbsentOrCompare                      // Absent or Compare
)

// Change is one of an attribute.
type Change struct {
	Kind  ChangeKind
	Attr  string
	Value types.AttributeValue // that is set or added
	Floor types.AttributeValue // of AddAbove
}

// ChangeKind is the kind of a change.
type ChangeKind uint8

// The kinds of changes.
const (
	Set ChangeKind = iota
	Add
	Remove   // an attribute that may be absent
	AddAbove // to a number, or to the floor where that is greater; only for a server that runs scripts
)

// An update has room for so many conditions and changes at first.
const (
	usualConditions = 6
	usualChanges    = 8
)

// NewUpdate returns an update without conditions that changes nothing. It answers with the item as it is afterwards,
// or as it is when a condition does not hold.
func NewUpdate(k Key) *ItemWrite {
	return &ItemWrite{
		Kind: Update, Key: k, Conditions: make([]Condition, 0, usualConditions), Changes: make([]Change, 0, usualChanges),
		Answer: AnswerItem, Shows: true,
	}
}

// NewPut returns the put of an item, which has its key.
func NewPut(item map[string]types.AttributeValue) *ItemWrite {
	return &ItemWrite{Kind: Put, Key: KeyOf(item), Item: item}
}

// PutNew returns the put of an item, on the condition that there is none with its key. A refusal shows the item that
// is there.
func PutNew(item map[string]types.AttributeValue) *ItemWrite {
	w := NewPut(item)
	w.RequireAbsent(AttrPK)
	w.Shows = true
	return w
}

// PutOrReplace returns the put of an item that may replace another one: one for which the conditions hold, or any where
// there are none.
func PutOrReplace(item map[string]types.AttributeValue) *ItemWrite {
	w := NewPut(item)
	w.OrNew = true
	return w
}

// NewDelete returns the deletion of an item.
func NewDelete(k Key) *ItemWrite { return &ItemWrite{Kind: Delete, Key: k} }

// KeyOf returns the key that attributes tell, empty texts where they tell none.
func KeyOf(item map[string]types.AttributeValue) (k Key) {
	if v, ok := item[AttrPK].(*types.AttributeValueMemberS); ok {
		k.PK = v.Value
	}
	if v, ok := item[AttrSK].(*types.AttributeValueMemberS); ok {
		k.SK = v.Value
	}
	return k
}

func (w *ItemWrite) require(c Condition) { w.Conditions = append(w.Conditions, c) }
func (w *ItemWrite) change(c Change)     { w.Changes = append(w.Changes, c) }

// Require adds a comparison to the conditions. The operator is "=", "<>", "<", "<=", ">" or ">=".
func (w *ItemWrite) Require(attr, operator string, v types.AttributeValue) {
	w.require(Condition{Kind: Compare, Attr: attr, Operator: operator, Value: v})
}

// RequireAbsent adds the condition that there is no such attribute.
func (w *ItemWrite) RequireAbsent(attr string) { w.require(Condition{Kind: Absent, Attr: attr}) }

// RequirePresent adds the condition that there is such an attribute.
func (w *ItemWrite) RequirePresent(attr string) { w.require(Condition{Kind: Present, Attr: attr}) }

// RequireAbsentOr adds the condition that there is no such attribute, or that it compares to a value so.
func (w *ItemWrite) RequireAbsentOr(attr, operator string, v types.AttributeValue) {
	w.require(Condition{Kind: AbsentOrCompare, Attr: attr, Operator: operator, Value: v})
}

// Set sets an attribute.
func (w *ItemWrite) Set(attr string, v types.AttributeValue) {
	w.change(Change{Kind: Set, Attr: attr, Value: v})
}

// RaiseTo sets a number, on the condition that it is not above n now.
func (w *ItemWrite) RaiseTo(attr string, n int64) {
	v := NumberAttribute(n)
	w.Require(attr, "<=", v)
	w.Set(attr, v)
}

// Add adds to a number; 0 changes nothing and is left out.
func (w *ItemWrite) Add(attr string, n int64) {
	if n != 0 {
		w.AddValue(attr, NumberAttribute(n))
	}
}

// AddValue adds to a number.
func (w *ItemWrite) AddValue(attr string, n types.AttributeValue) {
	w.change(Change{Kind: Add, Attr: attr, Value: n})
}

// AddAbove adds to a number, or to the floor where that is greater.
func (w *ItemWrite) AddAbove(attr string, floor, n types.AttributeValue) {
	w.change(Change{Kind: AddAbove, Attr: attr, Value: n, Floor: floor})
}

// Remove removes an attribute, which may be absent.
func (w *ItemWrite) Remove(attr string) { w.change(Change{Kind: Remove, Attr: attr}) }
