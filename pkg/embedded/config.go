package embedded

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultMaxBuckets is the most buckets held at once, about 1 GiB of memory with short names.
	DefaultMaxBuckets = 5_000_000
	// MarkBytes is the memory that a mark of a settlement takes at most.
	MarkBytes = 1 << 30 / DefaultMaxMarks
	// BucketBytes is the memory that a bucket takes at most, with the longest names that are
	// kept and two limits. One with short names and one limit takes a fifth of it.
	BucketBytes = 1344
	// DefaultMaxMarks is the most marks of settlements held at once, about 1 GiB of memory.
	DefaultMaxMarks = 5_000_000
	// DefaultSweepInterval is how long it takes to look at every bucket once.
	DefaultSweepInterval = time.Minute
)

// Config configures a store. The zero Config is useful.
type Config struct {
	// MaxBuckets is the most buckets held at once; 0 = DefaultMaxBuckets. Buckets
	// that are full again do not count for longer than a sweep.
	MaxBuckets int64
	// MaxOverflow is the most overflow buckets, which keys share that have no bucket when
	// there are MaxBuckets; 0 = DefaultMaxOverflow. Beyond it such keys are denied.
	MaxOverflow int64
	// MaxMarks is the most marks of settlements held at once; 0 = DefaultMaxMarks.
	// Marks that have expired do not count for longer than a sweep.
	MaxMarks int64
	// SweepInterval is how long it takes to look at every bucket and mark once and
	// drop those that are full or have expired; 0 = DefaultSweepInterval.
	SweepInterval time.Duration
	// Now is the clock by which full buckets are found; nil = time.Now. It should be
	// the clock that callers read.
	Now func() time.Time
	// NewFile has Open make an empty file also in a directory that had one, which is
	// missing: all buckets are full then.
	NewFile bool
	// AuditRetention is how long audit events are kept; 0 = limiter.AuditRetention.
	AuditRetention time.Duration
	// Logger is told what a crash has lost, and that the file cannot be written; nil = none.
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
