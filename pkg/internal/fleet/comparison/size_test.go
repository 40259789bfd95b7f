//go:build !torture && !race

package comparison_test

// everyLatency says that TestChanges observes each change with each latency, and not with one.
const everyLatency = false
