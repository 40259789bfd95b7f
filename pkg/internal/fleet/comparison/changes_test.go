package comparison_test

import "testing"

// TestChanges holds changes of a bucket under load to their bounds, each with one latency. make torture
// has each with each latency, and so has make compare, which writes the file of docs. make test has few.
// A part of it:
//
//	go test -tags torture ./pkg/internal/fleet/comparison -run 'TestChanges/raise$/auto/5ms' -v
func TestChanges(t *testing.T) {
	changes(t, everyLatency, testedChanges)
}
