//go:build race

package datafile

// The tests of damage and of power cuts are this large with the race detector, under which each
// file that is opened takes several times as long. make test runs them in full without it.
const (
	historyCommits           = 12
	staleCommits, staleFound = 9, 40
	damageStep               = 5
)
