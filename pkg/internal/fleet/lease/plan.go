package lease

// Kind is the kind of a lease write.
type Kind uint8

// The kinds of lease writes.
const (
	Grant  Kind = iota // the first of a lease
	Renew              // of its term, with other parts or the same
	Return             // of all parts: the slot is removed
)

// Plan is a lease write. As of Now the centre gives parts of its rate and of its room:
// Slot.Rate − OldRate and Slot.Room − OldRoom. It also gives Draw millitokens of each
// limit. Below zero it gets them. The plan is for the item at the version Pinned. The
// return of a lease in debt draws the debt, which may be more than the centre has.
type Plan struct {
	Kind    Kind
	Create  bool    // the item is believed not to exist
	Pinned  Version // of the item
	Now     int64   // time of the plan, not before any time that the item was refilled to
	OldRate int     // parts of the own slot in the item, 0 if there is none
	OldRoom int
	Slot    Slot    // to be written; in a Return it has no parts, and is removed
	Draw    []int64 // by limit

	local  int64 // time of this replica, which the demand is known by
	clock  Clock
	draw   float64
	brings bool
	change bool
	scarce bool
}
