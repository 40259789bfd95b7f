package ratemodel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const start = 1000 // ms; true time at which a run starts

// message is a write on its way to the store, or a reply on its way back.
type message struct {
	from, life int
	write      *write
	lost       bool // the reply never arrives
	reply      bool
	applied    bool
	image      item
	due        int64 // true time before which it does not arrive
	sent       int64
}

type world struct {
	rng     *rand.Rand
	removed Guard
	shape   schedule
	now     int64 // true time, ms
	items   [maxItems]item
	limits  [][maxLimits]limit // by version of the limits
	parents [maxLimits]limit
	net     []*message
	reps    []*replica
	dead    []*holder                 // of crashed replicas, for the ledger
	ops     [maxReplicas][]*operation // all takes
	ids     int64
	commits int
	book    ledger
	events  []event
	wrong   string
	tracing bool
	trace   []string
	stats   Stats
}

func (w *world) tracef(format string, a ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%d ", w.now)+fmt.Sprintf(format, a...))
	}
}

// fail keeps the first violation.
func (w *world) fail(format string, a ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, a...)
		w.tracef("VIOLATION %s", w.wrong)
	}
}

func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }
func (w *world) upTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return w.rng.Int64N(n + 1)
}

func (w *world) newID() int64 { w.ids++; return w.ids }

// limitOf is the limit as an item has it.
func (w *world) limitOf(it *item, i, l int) limit {
	if i == parentItem {
		return w.parents[l]
	}
	return w.limits[it[attrVersion]][l].shard(i, it[attrLevel])
}

func (w *world) send(r *replica, q *write) {
	m := &message{from: r.n, life: r.life, write: q, sent: w.now}
	m.lost = w.shape.lose && w.chance(8)
	w.tracef("r%d plans %s at %d item %d: %s", r.n, q.kind, q.at, q.item, q)
	w.net = append(w.net, m)
	doubled := q.op != nil || w.chance(4)
	if doubled && w.chance(5) {
		twice := *m
		w.net = append(w.net, &twice)
	}
}

// deliver brings one message a step on.
func (w *world) deliver() {
	if len(w.net) == 0 {
		return
	}
	i := w.rng.IntN(len(w.net))
	m := w.net[i]
	if m.reply {
		w.deliverReply(i)
		return
	}
	slow := w.chance(6) || m.write.op == nil && !w.chance(4)
	if w.shape.late && slow && w.now-m.sent < 200 {
		return
	}
	w.net = append(w.net[:i], w.net[i+1:]...)
	if w.shape.lose && w.chance(25) {
		w.tracef("lost on the way: %s %d", m.write.kind, m.write.id)
		return
	}
	w.commit(m)
}

func (w *world) commit(m *message) {
	it := &w.items[m.write.item]
	before := *it
	m.applied = m.write.apply(it)
	if m.applied {
		w.commits++
		w.book.record(w, m.write, &before, it)
	}
	w.tracef("store: %s id %d of r%d applied=%v: %s", m.write.kind, m.write.id, m.from, m.applied, describe(it))
	if m.lost {
		return
	}
	back := *m
	back.reply, back.image = true, *it
	back.due = w.now + w.upTo(2)
	if w.chance(10) {
		back.due += w.upTo(30)
	}
	w.net = append(w.net, &back)
}

func (w *world) deliverReply(i int) {
	m := w.net[i]
	r := w.reps[m.from]
	if m.due > w.now || r.asleep > w.now {
		return
	}
	w.net = append(w.net[:i], w.net[i+1:]...)
	if r.life == m.life {
		r.receive(m)
	}
}

// pass lets time go on.
func (w *world) pass() {
	switch w.rng.IntN(6 * w.shape.pace) {
	case 0, 1:
		w.now += w.upTo(2)
	case 2:
		w.now += w.upTo(11)
	}
	if w.chance(40) {
		w.now += w.upTo(80)
	}
}

// expire removes items that their time to live ends: a bucket that is full and
// unused, and retired shards that are absorbed.
func (w *world) expire() {
	for i := range maxShards {
		it := &w.items[i]
		if it[attrCreated] == 0 || w.awaited(i) {
			continue
		}
		next := item{attrVersion: it[attrVersion], attrLevel: it[attrLevel]}
		switch {
		case it[attrRetired] == 1 && w.heir(i)[birthOf(it[attrLevel])] != it[attrBirth]:
			next[attrRetired] = 1
		case i == 0 && it[attrLevel] == 1 && w.unused(it):
		default:
			continue
		}
		w.tracef("item %d expires", i)
		*it = next
		w.book.forget(i)
		w.forget(i)
	}
}

// forget has no replica use a state for as long as an item stays that nothing uses, and no
// reply be under way for so long.
func (w *world) forget(i int) {
	w.net = slices.DeleteFunc(w.net, func(m *message) bool { return m.reply })
	for _, r := range w.reps {
		r.holders[i] = nil
		r.read()
	}
}

// awaited reports whether a copy of the creation of an item is under way.
func (w *world) awaited(i int) bool {
	for _, m := range w.net {
		if m.write.kind == kindCreate || m.write.kind == kindChild && m.write.item == i {
			return true
		}
	}
	for _, r := range w.reps {
		for _, op := range r.pending {
			if op.write.kind == kindCreate {
				return true
			}
		}
	}
	return false
}

// heir is the item that a shard was split from.
func (w *world) heir(i int) *item { return &w.items[i-int(bornAt(i))/2] }

// unused reports whether an item has been as one that was never used for a while.
func (w *world) unused(it *item) bool {
	if !it.alone(w.shape.parts) {
		return false
	}
	for n := range maxSlots {
		if it[slotID(n)] != 0 { // a wish without parts
			return false
		}
	}
	for l := range w.shape.limits {
		if it[deficit(l)]+it[carried(l)] > w.limitOf(it, 0, l).refilled(it, w.now-4*w.shape.skew) {
			return false
		}
	}
	return true
}

func (w *write) String() string {
	return fmt.Sprintf("id %d if %v do %v", w.id, w.tests, w.changes)
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
