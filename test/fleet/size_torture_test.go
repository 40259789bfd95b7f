//go:build torture

package fleet_test

import "time"

// How long the tests are in `make torture`.
const (
	exactDecisions = 3_000_000
	exactKills     = 6
	exactPatience  = 20 * time.Minute
)
