//go:build !race

package datafile

// The tests of damage and of power cuts are this large without the race detector.
const (
	// historyCommits is how many commits a file has that is damaged, or cut at each of them.
	historyCommits = 40
	// staleCommits is how many commits a file has whose pages go back to each of the last
	// eight, and staleFound how many of these pages must be refused at least: how many there
	// are depends on where pages come to lie.
	staleCommits, staleFound = 24, 200
	// damageStep says that one of so many damaged files is opened.
	damageStep = 1
)
