package lane

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Site says where the shards of a bucket are.
type Site struct {
	Namespace string // id of the namespace
	Bucket    limiter.BucketKey
}

// Key returns the key of a shard.
func (s *Site) Key(index int) schema.Key {
	return schema.BucketKey(s.Namespace, s.Bucket.Entity, s.Bucket.Resource, s.Bucket.Variant, index)
}

// Sight is what a lane saw of its item.
type Sight struct {
	State *schema.Bucket // nil = there is no item
	At    time.Time
	Quiet time.Time // since when the item has been used little
}

// Config is what the lanes of a process share. All fields but Clock, Leases, Form, Silence and Seen
// must be set.
type Config struct {
	Client     awsdb.Client // guarded by a breaker; it never retries
	Table      string
	Loop       awsdb.Loop
	Now        func() time.Time // the machine's clock, with both readings
	Clock      *awsdb.Clock     // corrects the clock; nil = nothing corrects it
	Attempt    time.Duration    // for one message
	Budget     time.Duration    // how old a plan may be that is sent
	MaxLanes   int              // lanes remembered; idle ones are dropped above
	ShardUnits int64            // write units a second that one item is good for
	Quiet      time.Duration    // how long a shard must be used little before it is merged
	Leases     bool             // tokens may be leased
	Logger     *slog.Logger
	// Form returns the form of the items of a namespace, by its name: schema.FormOld or
	// schema.FormNow; nil = FormNow.
	Form func(namespace string) int
	// Silence is told when no message has had a reply for a second, with the time of the first
	// and an error; nil = nothing is told.
	Silence func(since time.Time, err error)
	// Seen is told of each state of an item that is newer than the last. It is called
	// under the lane's lock, and must not call the lane; nil = nothing is told.
	Seen func(site *Site, index int, s Sight)
}

// Counters are what the lanes of a process have done.
type Counters struct {
	Writes, Refused, Resent, Reads, Lost, Halts atomic.Int64
	LateAdmitted, LateDenied                    atomic.Int64
	Granted, Renewed, Returned, Reaped, Served  atomic.Int64
	Leases, Owed                                atomic.Int64 // now
	Splits, Merges                              atomic.Int64
}

// Lanes are the lanes of a process, with the messages that they have under way. It is
// safe for concurrent use.
type Lanes struct {
	cfg    Config
	self   identity
	health health
	table  table
	halted atomic.Bool // the clock cannot be trusted
	began  time.Time   // of the monotonic clock of leases

	holding holding
	closing atomic.Bool // nothing is leased any more

	work    tally // messages, and requests that are owed
	timers  tally
	stopped context.Context //nolint:containedctx // of the lanes' own work: done when Stop is called
	stop    context.CancelFunc

	Counters Counters
}

// New returns lanes. It sends nothing.
func New(cfg Config) *Lanes {
	s := &Lanes{cfg: cfg, began: cfg.Now()}
	s.self = identity{by: cfg.Loop, logger: cfg.Logger}
	s.self.first = drawReplica(cfg.Loop)
	s.table.init(cfg.MaxLanes)
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s
}

// Silent reports whether DynamoDB counts as down, because no message had a reply for a second.
func (s *Lanes) Silent() bool { return s.silent(s.cfg.Now()) }

// silent is Silent at a time. A silence that begins is told to the observer, without a lock.
func (s *Lanes) silent(now time.Time) bool {
	if !s.health.silent(now) {
		return false
	}
	if since, begins := s.health.begins(now); begins && s.cfg.Silence != nil {
		s.timers.add()
		s.cfg.Loop.Start(func() {
			defer s.timers.done()
			s.cfg.Silence(since, errSilent)
		})
	}
	return true
}

// Settle waits for messages, and for requests that are owed.
func (s *Lanes) Settle() { s.work.wait() }

// Stop ends all messages and timers, and counts what is owed as lost. Then it waits for them.
func (s *Lanes) Stop() {
	s.stop()
	for _, l := range s.table.all() {
		l.mu.Lock()
		l.closer.stop(s.cfg.Now())
		l.mu.Unlock()
	}
	s.work.wait()
	s.timers.wait()
}
