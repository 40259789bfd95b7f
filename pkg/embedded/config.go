package embedded

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultMaxBuckets is the most buckets in memory, about 1 GiB with short names.
	DefaultMaxBuckets = 5_000_000
	// MarkBytes is the most memory that a mark of a settlement takes.
	MarkBytes = 1 << 30 / DefaultMaxMarks
	// BucketBytes is the most memory that a bucket takes: with two limits and the longest names
	// that are stored. A bucket with short names and one limit takes a fifth of it.
	BucketBytes = 1344
	// DefaultMaxMarks is the most marks of settlements in memory, about 1 GiB.
	DefaultMaxMarks = 5_000_000
	// DefaultSweepInterval is the time in which the sweeper reads every bucket once.
	DefaultSweepInterval = time.Minute
)

// Config configures a store. The zero Config is useful.
type Config struct {
	// MaxBuckets is the most buckets in memory; 0 = DefaultMaxBuckets. A bucket that is full again
	// stops counting within one sweep.
	MaxBuckets int64
	// MaxOverflow is the most overflow buckets; 0 = DefaultMaxOverflow. When there are MaxBuckets,
	// keys without a bucket share them. Beyond MaxOverflow such keys are denied.
	MaxOverflow int64
	// MaxMarks is the most marks of settlements in memory; 0 = DefaultMaxMarks. A mark that has
	// expired stops counting within one sweep.
	MaxMarks int64
	// SweepInterval is the time in which the sweeper reads every bucket and mark once. It drops
	// full buckets and expired marks. 0 = DefaultSweepInterval.
	SweepInterval time.Duration
	// Now is the clock by which full buckets are found; nil = time.Now. It should be the clock of
	// the callers.
	Now func() time.Time
	// NewFile lets Open create an empty file in a directory whose file is missing. All buckets are
	// then full.
	NewFile bool
	// AuditRetention is the age at which audit events are deleted; 0 = limiter.AuditRetention.
	AuditRetention time.Duration
	// Logger logs losses after a crash and failed writes of the file; nil = no log.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	if cfg.MaxBuckets <= 0 {
		cfg.MaxBuckets = DefaultMaxBuckets
	}
	if cfg.MaxOverflow <= 0 {
		cfg.MaxOverflow = DefaultMaxOverflow
	}
	if cfg.MaxMarks <= 0 {
		cfg.MaxMarks = DefaultMaxMarks
	}
	if cfg.SweepInterval <= 0 {
		cfg.SweepInterval = DefaultSweepInterval
	}
	if cfg.AuditRetention <= 0 {
		cfg.AuditRetention = limiter.AuditRetention
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}
