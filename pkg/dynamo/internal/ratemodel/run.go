package ratemodel

import "math/rand/v2"

// Stats count the work of a run.
type Stats struct {
	Local    int // requests that a lease admitted
	Takes    int // requests that the centre admitted
	Large    int // requests that took from both
	Leases   int // lease writes planned
	Reaps    int // reaps planned
	Reshaped int // changes of limits, splits and merges, step by step
	Doubled  int // takes that landed twice
}

// Result is the outcome of a run.
type Result struct {
	Violation string // empty if there is none
	Trace     []string
	Stats     Stats
}

// schedule is drawn from the seed: the limits, the replicas and the faults.
type schedule struct {
	limits, replicas, steps, pace, greedy, stale int
	parts, skew, term, slow                      int64

	lose, crash, sleep, clocks, late bool
	change, charge, refund, shards   bool
	large, fresh, sharedOwn, duel    bool
	weights                          []weight
	scripted                         func(*world)
}

// weight is how often a replica does a thing.
type weight struct {
	n  int
	do func(*replica)
}

// Run is one run from a seed with one guard removed, or with none. It returns a
// trace if asked for.
func Run(seed uint64, removed Guard, trace bool) Result {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a run is drawn from its seed
	w := &world{rng: rng, removed: removed, now: start, tracing: trace}
	w.shape = w.draw(seed)
	w.limits = append(w.limits, [maxLimits]limit{}, w.drawLimits())
	w.begin()
	step := (*world).step
	if w.shape.scripted != nil {
		step = w.shape.scripted
	}
	for range w.shape.steps {
		step(w)
		if w.wrong != "" {
			break
		}
	}
	if w.wrong == "" {
		w.judge()
	}
	return Result{w.wrong, w.trace, w.stats}
}

func (w *world) drawLimits() (lims [maxLimits]limit) {
	for l := range w.shape.limits {
		lims[l] = limit{
			capacity: 2 + w.upTo(9), amount: 1 + w.upTo(2),
			period: w.shape.slow * (1 + w.upTo(3)), parts: w.shape.parts,
		}
	}
	return lims
}

// begin puts the item into the table, or leaves it to the first take.
func (w *world) begin() {
	w.items[0][attrVersion], w.items[0][attrLevel] = 1, 1
	w.items[1][attrRetired], w.items[1][attrVersion], w.items[1][attrLevel] = 1, 1, 2
	if !w.shape.fresh {
		root := &w.items[0]
		root[attrCreated], root[attrRate], root[attrRoom] = 1, w.shape.parts, w.shape.parts
		for l := range w.shape.limits {
			root[deficit(l)] = w.limits[1][l].refilled(root, w.now) - 5*w.upTo(2)
		}
		w.book.restart(w, 0)
	}
	for n := range w.shape.replicas {
		r := &replica{world: w, n: n}
		if w.shape.clocks {
			r.offset = w.upTo(2*w.shape.skew) - w.shape.skew
		}
		w.reps = append(w.reps, r)
		r.read()
	}
}

func (w *world) step() {
	w.pass()
	for range 4 {
		w.deliver()
	}
	r := w.reps[w.rng.IntN(w.shape.replicas)]
	if r.asleep > w.now {
		return
	}
	if w.chance(4) {
		r.read()
	}
	total := 0
	for _, c := range w.shape.weights {
		total += c.n
	}
	x := w.rng.IntN(total)
	for _, c := range w.shape.weights {
		if x < c.n {
			c.do(r)
			return
		}
		x -= c.n
	}
}
