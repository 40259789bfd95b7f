//go:build !torture

package fleet_test

import "time"

// How long the tests are: about two minutes in all on two cores that do nothing else.
const (
	exactDecisions = 400_000
	exactKills     = 1 // of each replica that is killed
	exactPatience  = 6 * time.Minute
)
