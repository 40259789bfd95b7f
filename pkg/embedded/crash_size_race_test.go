//go:build race && !torture

package embedded

// crashSeeds is the number of runs of TestCrashes with the race detector, which is several times
// slower.
const crashSeeds = 15
