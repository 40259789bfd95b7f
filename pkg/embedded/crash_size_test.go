//go:build !race && !torture

package embedded

// How many runs TestCrashes makes.
const crashSeeds = 40
