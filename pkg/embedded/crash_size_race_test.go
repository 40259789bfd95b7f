//go:build race && !torture

package embedded

// How many runs TestCrashes makes with the race detector, in which each takes several
// times as long.
const crashSeeds = 15
