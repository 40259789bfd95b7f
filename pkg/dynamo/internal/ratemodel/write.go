package ratemodel

import "fmt"

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

// raise moves v by dv, from its floor.
func (w *write) raise(l int, dv int64) {
	w.intent[l] += dv
	w.state[deficit(l)] += dv
}

// rise lets v rise by x from its floor: SET if v is seen below the bound, else ADD.
// The bound is R(t) and the lift, the floor is the start of SET.
func (w *write) rise(g Guard, s *item, l int, refilled, lift, x int64) {
	w.intent[l] = x
	v := deficit(l)
	bound := refilled + lift
	if s[v] < bound || lift == 0 && s[v] == bound {
		w.require(v, atMost, bound)
		w.floor[l] = bound
		if g == LiftToBound {
			bound = refilled
		}
		w.set(v, bound+x)
		return
	}
	if g != BusyFloor {
		w.require(v, atLeast, refilled)
	}
	w.add(v, x)
}

// restructures reports whether a write changes state that commuting writes depend on:
// they are pinned to the epoch, and must not find the state after it.
func (w *write) restructures(g Guard, s *item) bool {
	for l := range maxLimits {
		if w.intent[l] < 0 && g != EpochTokens {
			return true
		}
	}
	return w.state[attrLine] != s[attrLine] && g != EpochLine ||
		w.state[attrRoom] < s[attrRoom] && g != EpochRoom ||
		w.state[attrVersion] != s[attrVersion] && g != EpochLimits
}

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

func (w *write) String() string {
	return fmt.Sprintf("id %d if %v do %v", w.id, w.tests, w.changes)
}
