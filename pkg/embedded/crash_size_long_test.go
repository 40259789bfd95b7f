//go:build long && !torture

package embedded

// crashSeeds is the number of runs of TestCrashes in make test-long.
const crashSeeds = 40
