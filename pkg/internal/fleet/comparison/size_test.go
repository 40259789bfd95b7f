//go:build !long && !torture

package comparison_test

// How much of TestScenarios and TestChanges make test runs.
const (
	testedScenarios = 1
	testedChanges   = 2
	everyLatency    = false
)
