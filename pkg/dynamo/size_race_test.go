//go:build race

package dynamo_test

// faultyRounds is how often TestShardsUnderFaults splits and merges a bucket amid faults,
// with the race detector, in which each round takes several times as long.
const faultyRounds = 1
