package comparison_test

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// scenario is a load on one bucket, or on the buckets of a few keys and of their parent.
// Calls come at random times, and find the replicas as they are after their start: they
// have not read the limits, and there is no bucket.
type scenario struct {
	name     string
	text     string
	replicas int
	limit    limiter.Limit
	short    load
	long     load // for the page; 12 s of calls where not said otherwise
	demands  demands

	keys    []float64     // their parts of the calls; none = the limit is of the only entity
	own     limiter.Limit // of each key; limit is that of their parent
	most    int64         // tokens of a call, 1 to that at random; 0 = 1
	spread  []float64     // the replicas' parts of the calls; none = the same for all
	moves   time.Duration // all calls come to one replica, to another each time; 0 = never
	latency time.Duration // half of all messages take less; 0 = medianLatency
	units   int64         // write units a second from which the bucket is split; 0 = it is not
	warms   time.Duration // for so long after the start messages take ten times as long
	logger  *slog.Logger  // of the stores; nil = none
	flies   bool          // the limit is of requests in flight, none of which ends
	tested  bool          // its short load is run with the tests of every change
}

// load is the demand over a time.
type load struct {
	phases []phase // one after the other
	times  int     // that they are gone through
}

// phase is a time in which calls come at one rate.
type phase struct {
	rate  float64 // calls a second
	lasts time.Duration
}

// lasting returns the load of one rate.
func lasting(rate float64, lasts time.Duration) load { return load{[]phase{{rate, lasts}}, 1} }

// limitOf is a limit of that many tokens a second.
func limitOf(capacity, rate int64) limiter.Limit {
	return limiter.Custom("l", capacity, rate, time.Second)
}

// zipf returns the parts of n, where the i-th has 1/i of the first.
func zipf(n int) []float64 {
	parts := make([]float64, n)
	for i := range parts {
		parts[i] = 1 / float64(i+1)
	}
	return parts
}

// draw returns an index at random, according to its part.
func draw(r *rand.Rand, parts []float64) int {
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	x := r.Float64() * sum
	for i, p := range parts {
		x -= p
		if x < 0 {
			return i
		}
	}
	return len(parts) - 1
}

// scenarios are those of the comparison, by the letters of its table.
func scenarios() []scenario {
	const s = time.Second
	steady := func(rate float64) (short, long load) { return lasting(rate, 3*s), lasting(rate, 12*s) }
	of := func(name, text string, replicas int, limit limiter.Limit, rate float64, d demands) scenario {
		sc := scenario{name: name, text: text, replicas: replicas, limit: limit, demands: d}
		sc.short, sc.long = steady(rate)
		return sc
	}
	a := of("A", "hot, under its limit: 10,000 calls/s, limit 20,000", 3, limitOf(20_000, 20_000), 10_000, demands{under: true, writes: 0.002})
	g := of("G", "warm, under its limit: 1,000 calls/s, limit 2,000", 3, limitOf(2000, 2000), 1000, demands{under: true})
	b := of("B", "twice its limit: 10,000 calls/s, limit 5,000", 3, limitOf(5000, 5000), 10_000, demands{writes: 0.002})
	c := of("C", "storm of denials: 10,000 calls/s, limit 10, burst 100", 3, limitOf(100, 10), 10_000, demands{})
	d := of("D", "cold: 50 calls/s, limit 1, burst 60", 3, limitOf(60, 1), 50, demands{})
	d.short, d.long = lasting(50, 12*s), lasting(50, 30*s) // few calls: each weighs more
	e := scenario{name: "E", text: "on and off: 5,000 calls/s for 1 s of every 5 s, limit 1,000, burst 5,000", replicas: 3, limit: limitOf(5000, 1000)}
	e.short, e.long = load{[]phase{{5000, s}, {0, 4 * s}}, 1}, load{[]phase{{5000, s}, {0, 4 * s}}, 3}
	h := scenario{name: "H", text: "a burst of 1,000, 10 s of nothing, a burst of 40,000; limit 1,000, burst 5,000", replicas: 3, limit: limitOf(5000, 1000), demands: demands{writes: 0.002}}
	h.short = load{[]phase{{10_000, s / 10}, {0, 10 * s}, {40_000, s}, {0, s}}, 1}
	h.long = load{h.short.phases, 3}
	j := of("J", "ten replicas under the limit: 40,000 calls/s, limit 80,000", 10, limitOf(80_000, 80_000), 40_000, demands{under: true, writes: 0.002})
	i := of("I", "ten replicas, twice the limit: 40,000 calls/s, limit 20,000", 10, limitOf(20_000, 20_000), 40_000, demands{writes: 0.003})
	g.tested, b.tested, d.tested = true, true, true
	return append([]scenario{a, g, b, c, d, e, h, j, i}, harderScenarios(of)...)
}

// harderScenarios have demand that moves or leans to one side, and a slow store. They
// have requests of many tokens, a parent, and a start of everything at once.
func harderScenarios(of func(name, text string, replicas int, limit limiter.Limit, rate float64, d demands) scenario) []scenario {
	k := of("K", "demand that moves from replica to replica every 2 s: 9,000 calls/s, limit 10,000", 3, limitOf(10_000, 10_000), 9000, demands{under: true, writes: 0.002})
	k.moves = 2 * time.Second
	l := of("L", "ten replicas, the n-th with 1/n of the first's calls: 20,000/s, limit 10,000", 10, limitOf(10_000, 10_000), 20_000, demands{writes: 0.004})
	l.spread = zipf(10)
	m := of("M", "a slow store, messages of 40 ms at the median: 10,000 calls/s, limit 5,000", 3, limitOf(5000, 5000), 10_000, demands{writes: 0.002, slow: true})
	m.latency = 40 * time.Millisecond
	n := of("N", "1 to 100 tokens each: 2,000 calls/s, 101,000 tokens, limit 50,000", 3, limitOf(50_000, 50_000), 2000, demands{})
	n.most = 100
	o := of("O", "a parent of four keys: 8,000 calls/s, half of one key, limit of each key 2,000, of the parent 5,000", 3, limitOf(5000, 5000), 8000, demands{})
	o.keys, o.own = zipf(4), limitOf(2000, 2000)
	p := of("P", "three times its limit from a cold start, messages ten times as long for half a second: 3,000 calls/s, limit 1,000", 3, limitOf(1000, 1000), 3000, demands{})
	p.warms, p.tested = time.Second/2, true
	q := of("Q", "a quota with enough for all: 10,000 calls/s, 1,000,000 tokens and no refill", 3, limitOf(1_000_000, 0), 10_000, demands{under: true, writes: 0.002})
	r := of("R", "a quota that runs out: 10,000 calls/s, 20,000 tokens and no refill", 3, limitOf(20_000, 0), 10_000, demands{writes: 0.004})
	f := of("S", "requests in flight, enough for all: 10,000 calls/s, limit 1,000,000", 3, limitOf(1_000_000, 0), 10_000, demands{under: true, writes: 0.002})
	f.flies = true
	q.tested, r.tested, f.tested = true, true, true
	return []scenario{k, l, m, n, o, p, q, r, f}
}
