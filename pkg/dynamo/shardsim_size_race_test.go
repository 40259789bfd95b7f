//go:build race

package dynamo

// How many runs TestShardSimulation makes with the race detector, in which each takes several
// times as long.
const shardRuns = 300
