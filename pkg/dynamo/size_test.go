//go:build !long

package dynamo_test

// The sizes of the tests of this package in make test and with the race detector.
const (
	faultyRounds      = 1
	renamedBuckets    = 25
	rememberedBuckets = 1 << 10
	loadPause         = 3
	stallStep         = 3
	editStep          = 7
	randomCases       = 20
	localCases        = 3
)
