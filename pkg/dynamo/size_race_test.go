//go:build race

package dynamo_test

// The tests of this package are this large with the race detector, under which each step takes
// several times as long. make test runs them in full without it.
const (
	faultyRounds      = 1
	renamedBuckets    = 25
	rememberedBuckets = 1 << 10
	loadPause         = 3
	stallStep         = 3
	editStep          = 7
	randomCases       = 20
)
