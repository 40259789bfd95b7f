//go:build torture

package fleet_test

import "testing"

// TestLinearizableWithRefill is TestLinearizable with time as a part of the history.
func TestLinearizableWithRefill(t *testing.T) { checkHistory(t, "refilled", "", true) }
