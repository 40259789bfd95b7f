//go:build long

package engine_test

// stopStep: TestUsageOfReplicasThatStopInAStall has one of so many stalls. make test-long has all.
const stopStep = 1
