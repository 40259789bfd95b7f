package ratemodel

const (
	maxLimits   = 2
	maxReplicas = 3
	maxLives    = 3 // a crashed replica comes back as another holder
	maxSlots    = maxReplicas * maxLives
	maxItems    = 2 // the item of the bucket and its second shard
)

// attr is an attribute of an item. An absent number or id is zero.
type attr int

const (
	attrCreated  attr = iota // 1 once the item exists
	attrVersion              // cv: version of the limits
	attrCount                // n: +1 with each write, orders the states that replies bring
	attrRate                 // kc: parts of the rate that the centre has
	attrLine                 // kt: the centre's refill clock K(t) is kc·t + kt
	attrRoom                 // bc: parts of the room that the centre has
	attrEpoch                // ep: +1 with each split, merge, retirement
	attrLevel                // lvl: 1 or 2 shards
	attrMove                 // mv: epoch of a split whose child is to be created
	attrMoveAt               // when the tokens that move were counted
	attrRetired              // rt: 1 on a shard that is not in use
	attrAbsorbed             // pe: epoch of the last child that was absorbed
	attrMoved                // tokens that move, one attribute a limit
	attrDeficit  = attrMoved + maxLimits
	attrOwn      = attrDeficit + maxLimits // lw: id of the last take, one a replica
	attrPaid     = attrOwn + maxReplicas   // lc: id of the last charge or refund, one a replica
	attrSlot     = attrPaid + maxReplicas  // ls: id, rate and room of a holder
	attrs        = attrSlot + 3*maxSlots
)

func deficit(l int) attr  { return attrDeficit + attr(l) }
func moved(l int) attr    { return attrMoved + attr(l) }
func slotID(s int) attr   { return attrSlot + attr(3*s) }
func slotRate(s int) attr { return slotID(s) + 1 }
func slotRoom(s int) attr { return slotID(s) + 2 }

// item is one item of the table: all its attributes.
type item [attrs]int64

// comparison is an operator of a condition.
type comparison string

const (
	equal   comparison = "="
	differs comparison = "<>"
	below   comparison = "<"
	atMost  comparison = "<="
	atLeast comparison = ">="
)

// test is a condition as DynamoDB has them: an attribute against a constant.
type test struct {
	attr  attr
	is    comparison
	value int64
}

func (c test) holds(it *item) bool {
	v := it[c.attr]
	switch c.is {
	case equal:
		return v == c.value
	case differs:
		return v != c.value
	case below:
		return v < c.value
	case atMost:
		return v <= c.value
	case atLeast:
		return v >= c.value
	}
	return false
}

// change is an update as DynamoDB has them: SET to a constant, or ADD one.
type change struct {
	attr  attr
	add   bool
	value int64
}

// kind is the row of the table of writes that a write belongs to. Most switches are
// about a few of them.
type kind = string

const (
	kindCreate kind = "create"
	kindTake   kind = "take"
	kindCharge kind = "charge"
	kindRefund kind = "refund"
	kindLease  kind = "lease"
	kindReturn kind = "return"
	kindReap   kind = "reap"
	kindChange kind = "change of limits"
	kindSplit  kind = "split"
	kindChild  kind = "create child"
	kindClear  kind = "clear"
	kindRetire kind = "retire"
	kindAbsorb kind = "absorb"
)

// write is one conditional UpdateItem.
type write struct {
	kind    kind
	item    int
	tests   []test
	changes []change
	at      int64 // the planner's clock
	id      int64

	// The rest is for the oracles; the store does not see it.
	op     *operation
	intent [maxLimits]int64 // by so much v is to rise, from its floor
	floor  [maxLimits]int64 // a v below it is raised to it first; noFloor: it is not
	seen   [maxLimits]int64 // of a lease write: the v that it was planned from
	next   *candidate       // the lease that this write makes
	slot   int              // of a reap, a return and a lease write
}

const noFloor = -1 << 62

func (w *write) require(a attr, is comparison, v int64) {
	w.tests = append(w.tests, test{a, is, v})
}
func (w *write) set(a attr, v int64) { w.changes = append(w.changes, change{a, false, v}) }
func (w *write) add(a attr, v int64) { w.changes = append(w.changes, change{a, true, v}) }

// apply is the store: all conditions hold and all changes are made, or nothing is.
func (w *write) apply(it *item) bool {
	for _, c := range w.tests {
		if !c.holds(it) {
			return false
		}
	}
	for _, c := range w.changes {
		if c.add {
			it[c.attr] += c.value
		} else {
			it[c.attr] = c.value
		}
	}
	it[attrCount]++
	return true
}
