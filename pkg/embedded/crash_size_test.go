//go:build !race && !torture

package embedded

// crashSeeds is the number of runs of TestCrashes.
const crashSeeds = 40
