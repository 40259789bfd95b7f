package aggregator

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Snapshot names a usage snapshot.
type Snapshot struct {
	Bucket Bucket
	Window limiter.UsageWindow
	Start  time.Time // UTC
}

// Change is the gain of a snapshot from records of one shard of a stream.
type Change struct {
	Snapshot    Snapshot
	Names       Names
	Shard       string   // of the stream
	First, Last Sequence // of the records
	Used        map[string]int64
	Events      int64     // number of records
	Expires     time.Time // of the snapshot; zero = never
}

// Snapshots keeps usage snapshots.
type Snapshots interface {
	// Add applies a change whole, or not at all where the snapshot has a position in the shard
	// that is not below c.First: then it returns that position, and else "". An error wraps
	// limiter.ErrInvalid where the change can never be applied. Else its outcome may be unknown,
	// and the same change may be sent again.
	Add(ctx context.Context, c *Change) (has Sequence, err error)
}
