//go:build !race

package dynamo

// How many runs TestShardSimulation makes.
const shardRuns = 10_000
