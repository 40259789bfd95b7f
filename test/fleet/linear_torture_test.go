//go:build torture

package fleet_test

import "testing"

// TestLinearizableWithRefill is TestLinearizable with time as a part of the history. About one
// run in twenty loses some ten tokens once, of a cause that is not known: it is not over a
// limit, and denies what the model admits.
func TestLinearizableWithRefill(t *testing.T) { checkHistory(t, "refilled", "", true) }
