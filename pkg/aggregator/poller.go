package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

// Config configures a poller. Source, Snapshots, Leases and Owner must be set.
type Config struct {
	Source    Source
	Snapshots Snapshots
	Leases    Leases
	Owner     string // name of this process: another process never has it

	Windows      []limiter.UsageWindow                   // nil = all
	Retention    func(limiter.UsageWindow) time.Duration // how long a snapshot is kept after its window, MinRetention or more, 0 = for good; nil = as the window says
	Term         time.Duration                           // after which another process takes over; 0 = DefaultTerm
	Rescan       time.Duration                           // between two looks at the shards of the stream; 0 = DefaultRescan
	Idle         time.Duration                           // between two reads of a shard that has nothing new; 0 = DefaultIdle
	FlushAfter   time.Duration                           // records wait so long for others of their snapshot; 0 = DefaultFlushAfter
	FlushRecords int                                     // most records that wait; 0 = DefaultFlushRecords
	Splits       Splits                                  // finishes splits of buckets; nil = their replicas alone do
	Archive      Archive                                 // of audit events that expire; nil = none
	Encode       func(*Expired) ([]byte, error)          // writes an event of the archive as a line; needed with Archive
	Logger       *slog.Logger                            // nil = none
}

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

// sighting is a lease, and since when it is seen unchanged.
type sighting struct {
	fence, beat int64
	since       time.Time
}

// New returns a poller. Its errors wrap limiter.ErrInvalid.
func New(cfg Config) (*Poller, error) {
	if cfg.Source == nil || cfg.Snapshots == nil || cfg.Leases == nil || cfg.Owner == "" {
		return nil, fmt.Errorf("%w: an aggregator needs a stream, snapshots, leases and a name", limiter.ErrInvalid)
	}
	if cfg.Archive != nil && cfg.Encode == nil {
		return nil, fmt.Errorf("%w: an archive needs a form of its lines", limiter.ErrInvalid)
	}
	if cfg.Windows == nil {
		cfg.Windows = limiter.UsageWindows()
	}
	if err := CheckRetentions(cfg.Windows, cfg.Retention); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		of       *time.Duration
		standard time.Duration
	}{{&cfg.Term, DefaultTerm}, {&cfg.Rescan, DefaultRescan}, {&cfg.Idle, DefaultIdle}, {&cfg.FlushAfter, DefaultFlushAfter}} {
		if *d.of <= 0 {
			*d.of = d.standard
		}
	}
	if cfg.FlushRecords <= 0 {
		cfg.FlushRecords = DefaultFlushRecords
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Poller{cfg: cfg, health: newHealth(), seen: make(map[string]sighting), working: make(map[string]bool), wake: make(chan struct{}, 1)}, nil
}

// Stats counts the work of the poller so far.
func (p *Poller) Stats() Stats {
	s := p.counters.stats()
	s.Oldest = p.health.oldest()
	return s
}

// readStream works until the stream ends or ctx is done. It ends with the error of the first look at the stream
// if that wraps limiter.ErrInvalid.
func (p *Poller) readStream(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	for first := true; ctx.Err() == nil; first = false {
		p.health.begin()
		ended, err := p.round(ctx, &workers)
		p.health.end(err == nil)
		if first && errors.Is(err, limiter.ErrInvalid) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			p.counters.failures.Add(1)
			p.health.fail("", "the shards of the stream cannot be listed", err)
			p.cfg.Logger.WarnContext(ctx, "the shards of the stream cannot be listed", "error", err)
		}
		if ended {
			return nil
		}
		p.rest(ctx)
	}
	return nil
}

// rest waits for the next look at the stream.
func (p *Poller) rest(ctx context.Context) {
	timer := time.NewTimer(p.cfg.Rescan)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-p.wake:
	}
}

// round looks at the shards of the stream, and begins to work on those that are free, or else on one of a
// process that has more. The leases come first: a shard that has a lease then, and is not in the later
// list, is dropped. It reports whether the stream has ended.
func (p *Poller) round(ctx context.Context, workers *sync.WaitGroup) (ended bool, err error) {
	all, err := p.cfg.Leases.List(ctx)
	if err != nil {
		return false, err
	}
	shards, err := p.cfg.Source.Shards(ctx)
	if err != nil {
		return errors.Is(err, ErrGone), err
	}
	leases := make(map[string]Lease, len(all))
	for _, l := range all {
		leases[l.Shard] = l
		p.check(&l)
	}
	p.observe(leases)
	for _, l := range lost(shards, leases) {
		if p.free(l) {
			p.abandon(ctx, l)
		}
	}
	p.share(ctx, ready(shards, leases), leases, workers)
	return finished(shards, leases), nil
}

// share begins to work on shards that are free, or else on one of a process that has more.
func (p *Poller) share(ctx context.Context, open []Shard, leases map[string]Lease, workers *sync.WaitGroup) {
	begun := 0
	for _, s := range open {
		l := leases[s.ID]
		l.Shard = s.ID
		if p.free(l) {
			p.begin(ctx, l, workers)
			begun++
		}
	}
	if begun > 0 {
		return // the leases are others now
	}
	if l, ok := surplus(p.cfg.Owner, open, leases); ok {
		p.begin(ctx, l, workers)
	}
}

// check tells of a lease that cannot be read. Its shard waits, and so do the children of that.
func (p *Poller) check(l *Lease) {
	if l.Problem != nil {
		p.counters.failures.Add(1)
		p.cfg.Logger.Error("a lease of the stream cannot be read: its shard waits until the item is removed", "shard", l.Shard, "error", l.Problem)
	}
}

// observe notes which leases have changed.
func (p *Poller) observe(leases map[string]Lease) {
	for id := range p.seen {
		if _, found := leases[id]; !found {
			delete(p.seen, id)
		}
	}
	for id, l := range leases {
		if s := p.seen[id]; s.fence != l.Fence || s.beat != l.Beat {
			p.seen[id] = sighting{l.Fence, l.Beat, time.Now()}
		}
	}
}

// free reports whether this process may take a lease: it has no owner, or the owner has not
// written it for a term.
func (p *Poller) free(l Lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.working[l.Shard] && l.Problem == nil && (l.Owner == "" || time.Since(p.seen[l.Shard].since) >= p.cfg.Term)
}

// begin takes the lease of a shard and works on it.
func (p *Poller) begin(ctx context.Context, before Lease, workers *sync.WaitGroup) {
	p.health.loop()
	h := &holding{leases: p.cfg.Leases, term: p.cfg.Term, lease: before}
	err := h.write(ctx, func(l *Lease) { l.Owner, l.Fence = p.cfg.Owner, l.Fence+1 })
	if err != nil {
		if !errors.Is(err, ErrConflict) { // else another process was faster
			p.fail(ctx, "a lease of the stream cannot be taken", err)
		}
		return
	}
	p.mark(before.Shard, true)
	p.counters.shards.Add(1)
	p.health.reach(before.Shard, time.Now()) // until its first record tells more
	w := &worker{Poller: p, holding: h, shard: before.Shard, batch: NewBatch(before.Shard, p.cfg.Windows, p.cfg.Retention)}
	if p.cfg.Archive != nil {
		w.lines = NewLines(w.shard, p.cfg.Encode)
	}
	workers.Go(func() {
		if err := w.work(ctx); errors.Is(err, ErrConflict) {
			p.cfg.Logger.InfoContext(ctx, "another process goes on with a shard of the stream", "shard", w.shard)
		} else if err != nil {
			p.cfg.Logger.WarnContext(ctx, "a lease of the stream is lost", "shard", w.shard, "error", err)
		}
		p.counters.shards.Add(-1)
		p.health.leave(w.shard)
		p.mark(w.shard, false)
		select {
		case p.wake <- struct{}{}:
		default:
		}
	})
}

func (p *Poller) mark(shard string, working bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if working {
		p.working[shard] = true
	} else {
		delete(p.working, shard)
	}
}
