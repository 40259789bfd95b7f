//go:build !race

package comparison_test

// testedScenarios is how many scenarios TestScenarios runs at most: all that are tested.
const testedScenarios = 1 << 10
