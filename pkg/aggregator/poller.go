package aggregator

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Poller reads the shards of a stream. Several pollers of a stream share its shards.
type Poller struct {
	cfg      Config
	counters counters
	health   *health

	seen    map[string]sighting // leases of other processes
	working map[string]bool     // shards of this process; mu guards it
	mu      sync.Mutex
	wake    chan struct{} // holds one token when a shard has ended
}

// sighting is a lease, and the time since which it is unchanged.
type sighting struct {
	fence, beat int64
	since       time.Time
}

// New returns a poller. Its errors wrap limiter.ErrInvalid.
func New(cfg Config) (*Poller, error) {
	if cfg.Source == nil || cfg.Snapshots == nil && cfg.Archive == nil || cfg.Leases == nil || cfg.Owner == "" {
		return nil, fmt.Errorf("%w: an aggregator needs a stream, snapshots or an archive, leases and a name", limiter.ErrInvalid)
	}
	if cfg.Archive != nil && cfg.Encode == nil {
		return nil, fmt.Errorf("%w: an archive needs a form of its lines", limiter.ErrInvalid)
	}
	if cfg.Reports != nil {
		if err := (&Progress{ID: cfg.ReportID}).Check(); err != nil {
			return nil, err
		}
	}
	if cfg.Snapshots == nil {
		cfg.Windows = []limiter.UsageWindow{} // so that nothing is counted
		cfg.FlushRecords = 1                  // so that a repeat of a read makes the same objects
	}
	if cfg.Windows == nil {
		cfg.Windows = limiter.UsageWindows()
	}
	if err := CheckRetentions(cfg.Windows, cfg.Retention); err != nil {
		return nil, err
	}
	cfg.Term = cmp.Or(max(cfg.Term, 0), DefaultTerm)
	cfg.Rescan = cmp.Or(max(cfg.Rescan, 0), DefaultRescan)
	cfg.Idle = cmp.Or(max(cfg.Idle, 0), DefaultIdle)
	cfg.FlushAfter = cmp.Or(max(cfg.FlushAfter, 0), DefaultFlushAfter)
	cfg.FlushRecords = cmp.Or(max(cfg.FlushRecords, 0), DefaultFlushRecords)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Poller{cfg: cfg, health: newHealth(), seen: make(map[string]sighting), working: make(map[string]bool), wake: make(chan struct{}, 1)}, nil
}

// Stats counts the work of the poller so far.
func (p *Poller) Stats() Stats {
	s := p.counters.stats()
	s.Oldest = p.health.oldest()
	return s
}
