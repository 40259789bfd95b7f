//go:build race

package comparison_test

// testedScenarios is how many scenarios TestScenarios runs at most with the race detector, under
// which they take seven times as long. make test runs all of them without it.
const testedScenarios = 1
