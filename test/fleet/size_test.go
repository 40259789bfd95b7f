//go:build !torture

package fleet_test

import "time"

// How long the tests are: about a minute on two cores that do nothing else.
const (
	exactDecisions = 1_000_000
	exactKills     = 1 // of each replica that is killed
	exactPatience  = 6 * time.Minute
)
