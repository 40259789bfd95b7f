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
	Doubled  int // takes that landed twice, or after a refusal
	Late     int // takes that a replica decided before the store did
	Unsure   int // charges and refunds of which nothing tells whether they landed
	Cascades int // takes from the bucket and its parent
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
	parent, latecomer, expire        bool
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
		w.account()
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

// begin puts the items into the table, or leaves the first to the first take.
func (w *world) begin() {
	for i := range w.items {
		w.items[i][attrVersion], w.items[i][attrLevel] = 1, 1
		if i > 0 && i < maxShards {
			w.items[i][attrRetired] = 1
		}
	}
	w.parents = w.drawLimits()
	if !w.shape.fresh {
		w.put(0)
	}
	w.put(parentItem)
	for n := range w.shape.replicas {
		r := &replica{world: w, n: n}
		if w.shape.clocks {
			r.offset = w.upTo(2*w.shape.skew) - w.shape.skew
		}
		w.reps = append(w.reps, r)
		r.read()
	}
}

// put makes an item that is full, or nearly.
func (w *world) put(i int) {
	it := &w.items[i]
	it[attrCreated], it[attrRate], it[attrRoom] = 1, w.shape.parts, w.shape.parts
	it[attrEpoch], it[attrBirth] = 1, 1
	it[attrCount] = perMillisecond
	for l := range w.shape.limits {
		it[deficit(l)] = w.limitOf(it, i, l).refilled(it, w.now) - 5*w.upTo(2)
	}
	w.book.restart(w, i)
}

func (w *world) step() {
	w.pass()
	if w.shape.expire && w.chance(8) {
		w.expire()
	}
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
