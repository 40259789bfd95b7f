//go:build torture

package embedded

// crashSeeds is the number of runs of TestCrashes in `make torture`.
const crashSeeds = 3000
