//go:build long && !torture

package comparison_test

const (
	// testedScenarios is how many scenarios TestScenarios runs at most in make test-long: all that are tested.
	testedScenarios = 1 << 10
	// testedChanges is how many changes TestChanges observes at most.
	testedChanges = 1 << 10
	// everyLatency says that TestChanges observes each change with each latency, and not with one.
	everyLatency = false
)
