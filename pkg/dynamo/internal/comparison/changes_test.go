//go:build !race

package comparison_test

import "testing"

// TestChanges holds changes of a bucket under load to their bounds. make compare runs all of it
// and puts the table into docs; a part of it:
//
//	go test ./pkg/dynamo/internal/comparison -run 'TestChanges/raise$/auto/5ms' -v
func TestChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it")
	}
	changes(t)
}
