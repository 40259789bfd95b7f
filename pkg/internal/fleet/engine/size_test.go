//go:build !long

package engine_test

// stopStep is larger in make test and with the race detector.
const stopStep = 3
