//go:build !race

package comparison_test

import "testing"

// TestChanges holds changes of a bucket under load to their bounds, each with one latency. make
// torture has each with each latency, and so has make compare, which writes the file of docs.
// A part of it:
//
//	go test -tags torture ./pkg/internal/fleet/comparison -run 'TestChanges/raise$/auto/5ms' -v
func TestChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it")
	}
	changes(t, everyLatency)
}
