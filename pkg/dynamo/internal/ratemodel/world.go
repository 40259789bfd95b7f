package ratemodel

import "fmt"

const start = 1000 // ms; true time at which a run starts

// world is the surroundings of the replicas: the time, the table, the messages, and the record
// of the run.
type world struct {
	dice
	removed Guard
	shape   schedule
	now     int64 // true time, ms
	items   [maxItems]item
	limits  [][maxLimits]limit // by version of the limits
	parents [maxLimits]limit
	net     []*message
	leases  [maxReplicas][maxItems]*holder // of live replicas
	dead    []*holder                      // of crashed replicas, for the ledger
	ops     [maxReplicas][]*operation      // all takes
	ids     int64
	commits int
	events  events
	wrong   string
	tracing bool
	trace   []string
	stats   Stats
}

// tracef adds a line to the trace, if the run has one.
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

func (w *world) newID() int64 { w.ids++; return w.ids }

// limitOf is the limit as an item has it.
func (w *world) limitOf(it *item, i, l int) limit {
	if i == parentItem {
		return w.parents[l]
	}
	return w.limits[it[attrVersion]][l].shard(i, it[attrLevel])
}

// drawLimits draws the next version of the limits.
func (w *world) drawLimits() (lims [maxLimits]limit) {
	for l := range w.shape.limits {
		lims[l] = limit{
			capacity: 2 + w.upTo(9), amount: 1 + w.upTo(2),
			period: w.shape.slow * (1 + w.upTo(3)), parts: w.shape.parts,
		}
	}
	return lims
}

// heir is the item that a shard was split from.
func (w *world) heir(i int) *item { return &w.items[i-int(bornAt(i))/2] }

// absorbed is the units of a retired shard at t.
func absorbed(w *world, child *item, i, l int, t int64) int64 {
	lim := w.limitOf(child, i, l)
	due := lim.amount * w.shape.parts * max(0, t-child[attrMoveAt])
	return min(lim.room(w.shape.parts), child[moved(l)]+due)
}
