package engine

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
)

// StoreConfig configures a store. Table must be set.
type StoreConfig struct {
	Table string
	// Buckets is the way of the buckets to the server, until [Store.Renew]; nil = that of the rest.
	Buckets awsdb.Items
	// Part returns which of Parts servers a call is for, see [awsdb.GuardConfig]; nil = there is one.
	Part  func(in any) (part int, one bool)
	Parts int
	// Generation is the base of generations, until Renew.
	Generation uint64

	// Attempt is how long one message may take; 0 = DefaultAttempt, or a tenth of Budget
	// where that is longer.
	Attempt time.Duration
	// Budget is the longest time of a decision, also where the caller's context allows
	// more. No planned write is sent that is older. 0 = DefaultBudget; at most 10 minutes.
	Budget time.Duration
	// Idle is how long a bucket is remembered that is not asked for; 0 = DefaultIdle.
	// The first request after that costs a refused write, or a read.
	Idle time.Duration
	// MaxLanes is how many buckets are remembered, each shard for itself;
	// 0 = DefaultMaxLanes. Those with work are remembered beyond it.
	MaxLanes int
	// ShardUnits is how many write units a second one item is good for: a bucket that
	// uses 80 % of them is split in two, up to 32 shards; 0 = DefaultShardUnits.
	ShardUnits int64
	// Quiet is how long two shards must use less than a quarter each before they are
	// merged; 0 = DefaultQuiet.
	Quiet time.Duration
	// Leases lets the store lease shares of a bucket and decide from them in memory, as
	// the policy of each op says. Without it the store leases nothing, under any policy.
	// Leases of other replicas are honoured either way. Replicas with and without leases
	// may share a table.
	Leases bool
	// Scripts says that the server runs scripts, so it knows [schema.ItemWrite.Known] and [schema.ItemWrite.OrUpdate].
	// A write that no other changed the item before is then answered without the item. A first take of a bucket needs
	// no second message where another replica has made the item.
	Scripts bool
	// Crowded says that the server does one thing after the other: the number of messages under way follows
	// their round trips.
	Crowded bool
	// AuditRetention is how long audit events are kept; 0 = limiter.AuditRetention.
	AuditRetention time.Duration
	// PurgeWait is how long a purge of a namespace waits before it deletes, so that no replica
	// has a lease; 0 = 12 s, below 0 = not at all.
	PurgeWait time.Duration
	// Now is the machine's clock, with both of its readings; nil = time.Now. Leases end by
	// either, so a clock whose wall reading is made from the monotonic one hides a sleep of
	// the machine. Splits, merges and retries go by it, and the times in records, corrected
	// by Clock. Decisions go by their callers' clocks.
	Now func() time.Time
	// Clock corrects the callers' clocks; the client has to pass it the dates of
	// replies. While it cannot be trusted nothing is refilled:
	// requests get the stored tokens. Those that need more wait for the replies to a
	// few reads, then fail with limiter.ErrUnavailable. nil = buckets go by their
	// callers' clocks as they are.
	Clock *awsdb.Clock
	// Observe is called when calls begin to be refused because the server does not answer
	// them, and when that is over, one after the other. It must not call the store; nil =
	// it is not called.
	Observe func(awsdb.State)
	// Logger gets lines about tokens that were lost, and about a clock that cannot be
	// trusted; nil = none.
	Logger *slog.Logger
}
