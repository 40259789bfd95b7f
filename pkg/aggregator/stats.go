package aggregator

import (
	"sync/atomic"
	"time"
)

// Stats counts the work of a poller since it was made.
type Stats struct {
	Records     int64     // of the stream, those of other items too
	Snapshots   int64     // writes of snapshots
	Repeated    int64     // records that a snapshot had already, once for each of its windows
	Losses      int64     // gaps: records that the stream dropped before they were read
	DeadLetters int64     // records that could not be counted
	Misdated    int64     // records that are booked to the time of their write, since that of their decision cannot be right
	Archived    int64     // audit events that are in the archive
	Splits      int64     // splits of buckets that were finished in place of a replica
	Failures    int64     // calls that failed, and were or will be made again
	Shards      int64     // of the stream that this process works on now
	Newest      time.Time // write of the newest record that is done; zero = none yet
	Missing     bool      // the stream has ended, and the table has no other
}

// counters are the stats of a poller that runs.
type counters struct {
	records, snapshots, repeated, losses, deadLetters, misdated, archived, splits, failures, shards atomic.Int64

	newest  atomic.Int64 // Unix ms; 0 = none yet
	missing atomic.Bool
}

func (c *counters) stats() Stats {
	s := Stats{
		Records: c.records.Load(), Snapshots: c.snapshots.Load(), Repeated: c.repeated.Load(), Losses: c.losses.Load(),
		DeadLetters: c.deadLetters.Load(), Misdated: c.misdated.Load(), Archived: c.archived.Load(), Splits: c.splits.Load(), Failures: c.failures.Load(), Shards: c.shards.Load(),
		Missing: c.missing.Load(),
	}
	if ms := c.newest.Load(); ms > 0 {
		s.Newest = time.UnixMilli(ms).UTC()
	}
	return s
}

// saw notes the write of a record that is done.
func (c *counters) saw(at time.Time) {
	for ms := at.UnixMilli(); ; {
		old := c.newest.Load()
		if ms <= old || c.newest.CompareAndSwap(old, ms) {
			return
		}
	}
}
