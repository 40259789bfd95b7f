//go:build long

package dynamo_test

// The sizes of the tests of this package in make test-long.
const (
	// faultyRounds is how often TestShardsUnderFaults splits and merges a bucket amid faults.
	faultyRounds = 3
	// renamedBuckets is how many random buckets TestABucketNeverBricks puts under other limits.
	renamedBuckets = 100
	// rememberedBuckets is how many buckets the store of TestIdleBucketsLeaveMemory remembers.
	rememberedBuckets = 1 << 12
	// loadPause is how long each caller of TestResetsUnderLoad, TestTopUpsUnderLoad and
	// TestResetBesideADeadHolder waits between two calls, as a multiple of about 2 ms.
	loadPause = 1
	// stallStep: TestAStallIsNoOutage has one of so many stalls.
	stallStep = 1
	// editStep: TestRecordsEditedByHand has one of so many edits.
	editStep = 1
	// randomCases is how many cases each random test of TestConformanceInMemory and
	// TestConformanceWithLeases has.
	randomCases = 100
	// localCases is the same of TestConformanceOnDynamoDBLocal, where each step costs round trips.
	localCases = 25
)
