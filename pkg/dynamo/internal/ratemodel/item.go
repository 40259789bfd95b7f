package ratemodel

const (
	maxLimits   = 2
	maxReplicas = 3
	maxLives    = 3 // a crashed replica comes back as another holder
	maxSlots    = maxReplicas * maxLives
	maxShards   = 4
	parentItem  = maxShards // the bucket of the parent, which has one item
	maxItems    = maxShards + 1
	maxSplits   = 2 // log2 of maxShards
)

// attr is an attribute of an item. An absent number or id is zero.
type attr int

const (
	attrCreated  attr = iota // 1 once the item exists
	attrVersion              // cv: version of the limits
	attrCount                // n: +1 with each write; with ep it pins the whole item, and orders states
	attrRate                 // kc: parts of the rate that the centre has
	attrLine                 // kt: the centre's refill clock K(t) is kc·t + kt
	attrRoom                 // bc: parts of the room that the centre has
	attrEpoch                // ep: the time of the creation; rises with all that commuting writes rest on
	attrLevel                // lvl: of how many equal shards it is one
	attrMove                 // mv: epoch of a split whose child is to be created
	attrMoveAt               // when the tokens that move were counted
	attrRetired              // rt: 1 on a shard that is not in use
	attrBirth                // epoch at which a shard was made
	attrChildren             // births of the shards that were split off, one attribute a level
	attrMoved    = attrChildren + maxSplits
	attrDeficit  = attrMoved + maxLimits // v, one a limit
	attrCarried  = attrDeficit + maxLimits
	attrOwn      = attrCarried + maxLimits // lw: id of the last take, one a replica
	attrPaid     = attrOwn + maxReplicas   // lc: id of the last charge or refund, one a replica
	attrSlot     = attrPaid + maxReplicas  // ls: id, rate and room of a holder
	attrs        = attrSlot + 3*maxSlots
)

func deficit(l int) attr  { return attrDeficit + attr(l) }
func carried(l int) attr  { return attrCarried + attr(l) }
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

// kind is the purpose of a write.
type kind = string

// Takes, charges and refunds commute; they may be exact too. All others are exact.
const (
	kindTake   kind = "take"
	kindCharge kind = "charge"
	kindRefund kind = "refund"

	kindCreate kind = "create"
	kindMixed  kind = "mixed"
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
	state   item  // of an exact write: the item as it is to be
	serial  int64 // of an exact write: n of the state that it was planned from

	// The rest is for the oracles; the store does not see it.
	op     *operation
	named  attr             // of a request: where its id goes
	intent [maxLimits]int64 // by so much v is to rise, from its floor
	floor  [maxLimits]int64 // a v below it is raised to it first; noFloor: it is not
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
