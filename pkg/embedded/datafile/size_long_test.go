//go:build long

package datafile

// The sizes of the tests of damage and of power cuts in make test-long.
const (
	// historyCommits is the number of commits of a file that is damaged in TestDamageIsFoundOrHarmless,
	// or cut at each of them in TestPowerCutAtEveryCommit.
	historyCommits = 40
	// staleCommits is the number of commits of the file of TestAPageThatWentBackIsFound, whose pages
	// are reverted to each of the last eight. staleFound is the least number of these pages that must be refused: the layout of
	// pages varies.
	staleCommits, staleFound = 24, 200
	// damageStep: one of so many damaged files is opened.
	damageStep = 1
)
