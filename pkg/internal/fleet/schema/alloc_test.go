//go:build !race

// The race detector makes its own allocations.

package schema

import (
	"strings"
	"testing"
)

// TestUnitsAreNotOnTheHeap: nothing but the text of a number is allocated.
func TestUnitsAreNotOnTheHeap(t *testing.T) {
	text := "-" + strings.Repeat("7", 38)
	if n := testing.AllocsPerRun(100, func() {
		n, _ := ParseUnits(text)
		q, m := n.Add(Product(3, 4)).Sub(UnitsOf(5)).DivMod(1e15)
		if n.Sign() > 0 || n.Cmp(Product(q, m)) == 0 {
			t.Error("the number is not below 0")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	n, _ := ParseUnits(text)
	if allocs := testing.AllocsPerRun(100, func() { text = n.String() }); allocs != 1 {
		t.Errorf("%v allocations of a text, want 1", allocs)
	}
}
