package server

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Parts of the memory that the process may use.
const (
	bucketShare = 2 // all buckets with the longest names take at most half
	markShare   = 8 // marks of settlements
	callShare   = 8 // calls in flight
	// spareShare is the part of the memory for buckets under the policy local that stands beside an
	// embedded store: a part of that store's buckets.
	spareShare = 8
	// leastBuckets is how many buckets there may be in however little memory.
	leastBuckets = 1000
	// groupPercent is how much of a control group's memory Go may use before it collects
	// its garbage in earnest.
	groupPercent = 90
	// Go collects garbage when as much has come as was in use. A service in use holds a few MiB, and would
	// collect many times a second. So a part of the memory counts as in use, at most idleMost bytes.
	idleShare = 16
	idleMost  = 64 << 20
)

// bucketsIn returns how many buckets there may be in that many bytes of memory.
func bucketsIn(memory int64) int64 {
	return max(memory/bucketShare/embedded.BucketBytes, leastBuckets)
}

// marksIn returns how many marks of settlements there may be in that many bytes of
// memory.
func marksIn(memory int64) int64 {
	return min(max(memory/markShare/embedded.MarkBytes, leastBuckets), embedded.DefaultMaxMarks)
}

// bytesIn returns how many bytes of calls may be in hand in that many bytes of
// memory.
func bytesIn(memory int64) int64 { return min(memory/callShare, rls.DefaultMaxBytes) }

// memoryLimit returns how much memory the process may use.
func memoryLimit() int64 {
	memory, _ := FindMemoryLimit()
	return memory
}

// idleIn returns how many bytes count as in use in that many bytes of memory.
func idleIn(memory int64) int64 { return min(memory/idleShare, idleMost) }

// keepWithin has the program stay within the memory of its control group, which Go does not
// read: beyond it the kernel ends the process. GOMEMLIMIT wins. The memory that it returns counts as in
// use while the caller keeps it. Nothing touches it, so that the system gives none for it.
func keepWithin(ctx context.Context, log *slog.Logger) (idle []byte) {
	memory, from := FindMemoryLimit()
	idle = make([]byte, idleIn(memory))
	if from == FromCgroup {
		debug.SetMemoryLimit(memory/100*groupPercent + int64(len(idle)))
	}
	log.InfoContext(ctx, "memory", "bytes", memory, "from", string(from))
	return idle
}
