//go:build !race

package dynamo_test

// faultyRounds is how often TestShardsUnderFaults splits and merges a bucket amid faults.
const faultyRounds = 3
