//go:build bench && !race && unix

package rls_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// TestBenchTargets measures the promises of this package; make bench runs it.
func TestBenchTargets(t *testing.T) {
	var table benchtable.Table
	table.Add(observedCost(t, newServiceLoad(t)))
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// measures has one number for each round.
type measures [21]float64
