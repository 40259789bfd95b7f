package comparison_test

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// scenario is a load on one bucket. Calls take one token each, at random times.
type scenario struct {
	name     string
	text     string
	replicas int
	limit    limiter.Limit
	phases   []phase // one after the other
	times    int     // that they are gone through
	short    bool    // what a test of every change runs
	demands  demands // on the run with token leases
}

// phase is a time in which calls come at one rate.
type phase struct {
	rate  float64 // calls a second
	lasts time.Duration
}

// demands are what a run must show.
type demands struct {
	mostWrites float64 // a decision; 0 = any
	leastShare float64 // of the ideal
}

// limitOf is a limit of so many tokens a second.
func limitOf(capacity, rate int64) limiter.Limit {
	return limiter.Custom("l", capacity, rate, time.Second)
}

// scenarios are those of the comparison, by the letters of its table.
func scenarios() []scenario {
	const s = time.Second
	return []scenario{
		{
			name: "A", text: "hot, under its limit: 10,000 calls a second, limit 20,000", replicas: 3, limit: limitOf(20_000, 20_000),
			phases: []phase{{10_000, 10 * s}}, times: 1, demands: demands{0.002, 0.999},
		},
		{
			name: "G", text: "warm, under its limit: 1,000 calls a second, limit 2,000", replicas: 3, limit: limitOf(2000, 2000),
			phases: []phase{{1000, 20 * s}}, times: 1, short: true, demands: demands{0.02, 0.999},
		},
		{
			name: "B", text: "twice its limit: 10,000 calls a second, limit 5,000", replicas: 3, limit: limitOf(5000, 5000),
			phases: []phase{{10_000, 10 * s}}, times: 1, short: true, demands: demands{0.02, 0.97},
		},
		{
			name: "C", text: "storm of denials: 10,000 calls a second, limit 10, burst 100", replicas: 3, limit: limitOf(100, 10),
			phases: []phase{{10_000, 10 * s}}, times: 1, demands: demands{0, 0.97},
		},
		{
			name: "D", text: "cold: 50 calls a second, limit 1, burst 60", replicas: 3, limit: limitOf(60, 1),
			phases: []phase{{50, 30 * s}}, times: 1, short: true, demands: demands{0, 0.97},
		},
		{
			name: "E", text: "on and off: 5,000 calls a second for 1 s of every 5 s, limit 1,000, burst 5,000", replicas: 3, limit: limitOf(5000, 1000),
			phases: []phase{{5000, s}, {0, 4 * s}}, times: 5, demands: demands{0, 0.97},
		},
		{
			name: "H", text: "a burst of 1,000, 10 s of nothing, a burst of 40,000; limit 1,000, burst 5,000", replicas: 3, limit: limitOf(5000, 1000),
			phases: []phase{{10_000, s / 10}, {0, 10 * s}, {40_000, s}, {0, s}}, times: 1, demands: demands{0, 0.97},
		},
		{
			name: "J", text: "ten replicas under the limit: 40,000 calls a second, limit 80,000", replicas: 10, limit: limitOf(80_000, 80_000),
			phases: []phase{{40_000, 6 * s}}, times: 1, demands: demands{0.0025, 0.999},
		},
		{
			name: "I", text: "ten replicas, twice the limit: 40,000 calls a second, limit 20,000", replicas: 10, limit: limitOf(20_000, 20_000),
			phases: []phase{{40_000, 3 * s}}, times: 1, demands: demands{0, 0.97},
		},
	}
}
