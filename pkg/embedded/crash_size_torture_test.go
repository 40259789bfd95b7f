//go:build torture

package embedded

// How many runs TestCrashes makes in `make torture`.
const crashSeeds = 3000
