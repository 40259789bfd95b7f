package ratemodel

import (
	"cmp"
	"fmt"
	"strings"
)

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

// live reports that an item gives tokens.
func (it *item) live() bool { return it[attrCreated] == 1 && it[attrRetired] == 0 }

// alone reports that nothing of an item is leased.
func (it *item) alone(parts int64) bool {
	return it[attrCreated] == 1 && it[attrRate] == parts && it[attrRoom] == parts
}

// newer reports whether a state is of a later time than another one of the same item.
func (it *item) newer(than *item) bool {
	return cmp.Or(cmp.Compare(it[attrEpoch], than[attrEpoch]), cmp.Compare(it[attrCount], than[attrCount])) >= 0
}

// refill raises v to the refill R(t). Refill that a full centre has no room for
// makes up for carried use.
func (it *item) refill(l int, refilled int64) {
	if over := refilled - it[deficit(l)]; over > 0 {
		it[deficit(l)] = refilled
		it[carried(l)] = max(0, it[carried(l)]-over)
	}
}

// give adds parts to the centre. Its clock K has no jump at t.
func (it *item) give(rate, room, t int64) {
	it[attrRate] += rate
	it[attrLine] -= rate * t
	it[attrRoom] += room
}

func (it *item) slot(n int, id, rate, room int64) {
	it[slotID(n)], it[slotRate(n)], it[slotRoom(n)] = id, rate, room
}

func describe(it *item) string {
	var s strings.Builder
	fmt.Fprintf(&s, "n %d kc %d kt %d bc %d v %v cu %v ep %d lvl %d mv %d rt %d own %v paid %v",
		it[attrCount], it[attrRate], it[attrLine], it[attrRoom], it[attrDeficit:attrCarried], it[attrCarried:attrOwn],
		it[attrEpoch], it[attrLevel], it[attrMove], it[attrRetired], it[attrOwn:attrPaid], it[attrPaid:attrSlot])
	for i := range maxSlots {
		if it[slotID(i)] != 0 {
			fmt.Fprintf(&s, " slot%d %v", i, it[slotID(i):slotID(i)+3])
		}
	}
	return s.String()
}
