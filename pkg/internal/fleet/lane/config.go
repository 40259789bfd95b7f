package lane

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
)

// Config is the common configuration of the lanes of a process. All fields but Before, Clock, Leases,
// Scripts, Crowded, Parts, Silence and Seen must be set.
type Config struct {
	Items      awsdb.Items // guarded by a breaker; it never retries
	Table      string
	Before     *Predecessors // of these lanes; nil = HandOver is not called
	Loop       awsdb.Loop
	Now        func() time.Time // the machine's clock, with both readings
	Clock      *awsdb.Clock     // corrects the clock; nil = nothing corrects it
	Attempt    time.Duration    // for one message
	Budget     time.Duration    // how old a plan may be that is sent
	MaxLanes   int              // lanes remembered; idle ones are dropped above
	ShardUnits int64            // write units a second that one item is good for
	Quiet      time.Duration    // how long a shard must be used little before it is merged
	Leases     bool             // tokens may be leased
	Scripts    bool             // the server knows [schema.ItemWrite.Known] and OrUpdate
	Crowded    bool             // the number of messages under way follows their round trips
	Parts      int              // of the server, see schema.Home; 0 = one
	Logger     *slog.Logger
	// Silence is called when no message has had a reply for a second; nil = it is not. It
	// gets the time of the first such message, and an error.
	Silence func(since time.Time, err error)
	// Seen is called with each state of an item that is newer than the last. It is
	// called under the lane's lock, and must not call the lane; nil = it is not.
	Seen func(site *Site, index int, s Sight)
}

// Counters count the work of the lanes of a process.
type Counters struct {
	Writes, Refused, Resent, Reads, Lost, Halts atomic.Int64
	LateAdmitted, LateDenied                    atomic.Int64
	Granted, Renewed, Returned, Reaped, Served  atomic.Int64
	Leases, Owed                                atomic.Int64 // now
	Splits, Merges                              atomic.Int64
	LostUsage                                   LostUsage
	// Millitokens that are gone for no admitted request, and those of admitted ones that were
	// not taken, by cause.
	LostLease, LostUnknown, LostTwice, LostOwed, LostRoom atomic.Int64
}

// LostUsage is the consumption that is not counted, or may not be, by its cause: in millitokens of all
// limits. Refunds that may still be counted are in it too.
type LostUsage struct {
	Stop    atomic.Int64 // the process ended before DynamoDB answered
	Outage  atomic.Int64 // DynamoDB did not answer for as long as owed requests are tried
	Reply   atomic.Int64 // the reply of its write was lost, and no image of the item shows whether it was applied
	Deleted atomic.Int64 // the item was deleted before
}
