package lane

import (
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// view is what a lane knows of its item.
type view struct {
	known bool
	state *schema.Bucket // as the newest reply showed it; nil = there is no item
	quick *plan.View     // of state; nil with it
	asked uint64         // the lane's count of events when the message left that brought it
	sent  time.Time      // when that was
	at    int64          // the lane's clock then
	now   int64          // the lane's clock: the latest of any caller, corrected; never goes back
	head  *schema.Bucket // state with the lane's own writes under way; nil = no write can be planned on it
	clock awsdb.Reading
	moved time.Time      // when now was last known to be the time
	seen  schema.Version // of the state's limits, with the generation of requests that no write has told the item
}

// fresh reports whether a request may be denied by the state now.
func (v *view) fresh(r *Request, now time.Time) bool {
	return v.asked > r.asked || now.Sub(v.sent) <= Freshness
}

// elsewhere reports whether another shard stands for this one: it is none, or no more.
func (v *view) elsewhere(index int) bool {
	return v.known && (v.state == nil && index > 0 || v.state != nil && v.state.Shard.Retired)
}

// advance brings the lane's clock up to a time. A clock that is not trusted moves nothing.
func (v *view) advance(at int64) {
	if !v.clock.Doubtful {
		v.now = max(v.now, at)
	}
}

// drift brings the lane's clock up by the time that passed on the machine's.
func (v *view) drift(now time.Time) {
	if !v.moved.IsZero() {
		v.advance(v.now + now.Sub(v.moved).Milliseconds())
	}
	v.moved = now
}

// newest returns the newest limits of the requests that wait.
func newest(queue []*Request) (limits *limiter.Limits, generation uint64) {
	var newest schema.Version
	for _, r := range queue {
		own := schema.Version{Generation: r.Generation, Hash: r.Limits.Hash()}
		switch {
		case limits == nil || own.Newer(newest):
			limits, newest = r.Limits, own
		case own.Hash == newest.Hash:
			newest.Generation = max(newest.Generation, own.Generation)
		}
	}
	return limits, newest.Generation
}

// consult brings what the lane knows of the clock up to date, and logs a change of trust.
func (l *Lane) consult() {
	s := l.host
	if s.cfg.Clock == nil {
		return
	}
	r := s.cfg.Clock.Reading()
	l.view.clock = r
	if s.halted.Load() == r.Doubtful || !s.halted.CompareAndSwap(!r.Doubtful, r.Doubtful) {
		return
	}
	if r.Doubtful {
		s.Counters.Halts.Add(1)
		s.cfg.Logger.Error("the clock cannot be trusted: nothing is refilled", slog.Duration("offset", r.Correction), slog.Duration("uncertainty", r.Uncertainty))
	} else {
		s.cfg.Logger.Info("the clock can be trusted: refills go on", slog.Duration("offset", r.Correction), slog.Duration("uncertainty", r.Uncertainty))
	}
}

// saw takes an image of the item for its state, unless a newer one is known. The lane is locked.
func (l *Lane) saw(image *schema.Bucket, f *flight, now time.Time) {
	v := &l.view
	older := v.known && (f.asked < v.asked && (image == nil || v.state == nil) || image != nil && v.state != nil && v.state.Newer(image))
	if older {
		return
	}
	v.known, v.state, v.quick, v.asked, v.sent, v.at = true, image, nil, f.asked, f.sent, f.at
	var ids []schema.WriteID
	if image != nil {
		v.quick = plan.At(image, 0)
		l.host.self.unmask(image)
		self := l.host.self.replica()
		own := image.Lease(self)
		if l.held.copied(own) {
			l.host.self.rename(self)
		} else {
			l.held.showed(own)
		}
		ids = slices.Collect(image.WriteIDs())
	}
	l.peers.observe(ids, l.host.self.replica(), now)
	l.reckon()
	l.lessee.sawLease(now)
	l.olds.saw(image, l.host.clocks(now).Mono)
	if image != nil {
		l.tasks.load.observe(now, image.Shard.Epoch, image.Shard.Units, l.host.cfg.ShardUnits)
		l.tasks.made = l.tasks.made && image.Shard.Moving
	}
	if l.host.cfg.Seen != nil {
		l.host.cfg.Seen(&l.site, l.index, Sight{State: image, At: now, Quiet: l.tasks.load.quiet})
	}
}

// reckon brings the state that the next write is planned on up to date.
func (l *Lane) reckon() {
	v := &l.view
	v.head = v.state
	for _, f := range l.out {
		switch {
		case f.write == nil:
		case v.head == nil, f.exact:
			v.head = f.write.After()
		case !f.shown(v.state):
			v.head = f.write.On(v.head)
		}
	}
}

// users returns how many replicas wrote to the item lately or had a lease, this one included.
func (l *Lane) users(now time.Time) int {
	n := l.replicas(now)
	for id := range l.held.watch.Users(l.host.clocks(now).Mono) {
		if !l.peers.of[id].fresh(now) {
			n++
		}
	}
	return n
}

// replicas returns how many replicas use the item, this one included.
func (l *Lane) replicas(now time.Time) int {
	others, _ := l.peers.count(now)
	return 1 + others
}
