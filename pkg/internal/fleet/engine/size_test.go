//go:build !race

package engine_test

// stopStep: TestUsageOfReplicasThatStopInAStall has one of so many stalls.
const stopStep = 1
