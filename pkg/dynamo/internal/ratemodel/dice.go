package ratemodel

import "math/rand/v2"

// dice draws from the seed of a run.
type dice struct{ rng *rand.Rand }

// chance is true once in n draws.
func (d dice) chance(n int) bool { return d.rng.IntN(n) == 0 }

// upTo is from 0 to n.
func (d dice) upTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return d.rng.Int64N(n + 1)
}
