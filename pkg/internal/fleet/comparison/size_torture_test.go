//go:build torture

package comparison_test

// How much of TestScenarios and TestChanges make torture runs: all.
const (
	testedScenarios = 1 << 10
	testedChanges   = 1 << 10
	everyLatency    = true
)
