package aggregator

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Defaults of a [Config].
const (
	DefaultTerm         = 30 * time.Second
	DefaultRescan       = 20 * time.Second
	DefaultIdle         = time.Second
	DefaultFlushAfter   = 10 * time.Second
	DefaultFlushRecords = 5000
)

// Config configures a poller. Source, Leases, Owner, and Snapshots or Archive must be set.
type Config struct {
	Source    Source
	Snapshots Snapshots // nil = no usage is counted, and the events of each read are archived by themselves
	Leases    Leases
	Owner     string // name of this process: another process never has it

	Windows      []limiter.UsageWindow                   // nil = all
	Retention    func(limiter.UsageWindow) time.Duration // how long a snapshot is kept after its window, MinRetention or more, 0 = for good; nil = as the window says
	Term         time.Duration                           // after which another process takes over; 0 = DefaultTerm
	Rescan       time.Duration                           // between two reads of the shards of the stream; 0 = DefaultRescan
	Idle         time.Duration                           // between two reads of a shard that has nothing new; 0 = DefaultIdle
	FlushAfter   time.Duration                           // records wait so long for others of their snapshot; 0 = DefaultFlushAfter
	FlushRecords int                                     // most records that wait; 0 = DefaultFlushRecords
	Splits       Splits                                  // finishes splits of buckets; nil = their replicas alone do
	Archive      Archive                                 // of audit events; nil = none
	Encode       func(*Expired) ([]byte, error)          // writes an event of the archive as a line; needed with Archive
	Reports      Reports                                 // are told how far the process is; nil = none
	ReportID     string                                  // of this process in Reports: another process never has it; needed with Reports
	Logger       *slog.Logger                            // nil = none
}
