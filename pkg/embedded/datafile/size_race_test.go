//go:build race

package datafile

// The sizes of the tests of damage and of power cuts with the race detector, which opens files
// several times more slowly. make test runs them in full without it.
const (
	historyCommits           = 12
	staleCommits, staleFound = 9, 40
	damageStep               = 5
)
