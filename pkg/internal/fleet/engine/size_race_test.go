//go:build race

package engine_test

// stopStep is larger with the race detector, under which a simulation takes several times as
// long. make test runs all of it without it.
const stopStep = 3
