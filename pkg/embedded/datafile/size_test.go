//go:build !long

package datafile

// The sizes of the tests of damage and of power cuts in make test and with the race detector.
const (
	historyCommits           = 12
	staleCommits, staleFound = 9, 40
	damageStep               = 5
)
