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
	Oldest      time.Time // records of all shards that this process works on are done up to then; zero = it has no shard
	Missing     bool      // the stream has ended, and the table has no other
}

// counters are the stats of a poller that runs.
type counters struct {
	records, snapshots, repeated, losses, deadLetters, misdated, archived, splits, failures, shards atomic.Int64

	missing atomic.Bool
}

func (c *counters) stats() Stats {
	s := Stats{
		Records: c.records.Load(), Snapshots: c.snapshots.Load(), Repeated: c.repeated.Load(), Losses: c.losses.Load(),
		DeadLetters: c.deadLetters.Load(), Misdated: c.misdated.Load(), Archived: c.archived.Load(), Splits: c.splits.Load(), Failures: c.failures.Load(), Shards: c.shards.Load(),
		Missing: c.missing.Load(),
	}
	return s
}
