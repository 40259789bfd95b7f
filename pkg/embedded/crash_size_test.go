//go:build !long && !torture

package embedded

// crashSeeds is the number of runs of TestCrashes in make test and with the race detector.
const crashSeeds = 15
