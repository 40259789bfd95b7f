package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/internal/clocks"
	"github.com/ratelimit/ratelimit/internal/clocktest"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// replica is a place where processes run, one after the other. Its clocks are its own.
type replica struct {
	index   int
	skew    int64 // ns, of its clock on the wall
	drift   int64 // of its monotonic clock: ns gained in a million, or lost, by turns
	phase   int64
	process *process
	runs    int
	latest  []int // index of the newest limits that it knows, by bucket
	cutOff  int64 // until when messages to DynamoDB and replies are lost
	deaf    bool  // all of them; else half of them
}

// loses reports whether a message or a reply is lost since the replica is cut off.
func (at *replica) loses(f *fleet) bool {
	return at.cutOff > f.now && (at.deaf || f.r.IntN(2) == 0)
}

// process is a run of a replica: a store, and what it does. It is the store's loop.
type process struct {
	*replica
	fleet   *fleet
	store   *Store
	stopped *simContext
	tasks   []*task // in order of their beginning
	waiting []wait
	ended   bool
	leaving bool // it has no more calls, since it ends in order

	clocks *clocks.Clocks // those of the program
	clock  *Clock

	// While it is paused none of its tasks goes on. Its machine may be what stands still:
	// asleep, with its monotonic clock, or paused as a whole, with both.
	pausedUntil int64
	frozen      int64 // ns that its monotonic clock stood still
	behind      int64 // ns that its wall clock stood still, or was set back
}

// wait is a task that waits for a channel to be closed.
type wait struct {
	task *task
	stop uint64
	done <-chan struct{}
}

// begin starts a process of a replica.
func (f *fleet) begin(at *replica) {
	p := &process{replica: at, fleet: f}
	p.stopped = f.newContext(context.Background(), never)
	p.clocks = clocks.New(p.machine)
	now := p.clocks.Store
	if f.callClock {
		now = p.clocks.Call
	}
	p.clock = NewClock(now, 0)
	cfg, err := Config{
		Client: fleetClient{DB: f.db, process: p}, Table: simTable, Now: now, Clock: p.clock, Logger: slog.New(lossLog{slog.DiscardHandler, p}),
		ShardUnits: f.shardUnits, Quiet: f.quiet, MaxLanes: 1 << 20, Idle: 10_000 * time.Hour, Leases: f.leases,
	}.withDefaults()
	if err != nil {
		f.t.Fatal(err)
	}
	at.runs++
	p.store = newStore(cfg, p, fmt.Sprint("r", at.index, "x", at.runs))
	if f.copies && f.r.IntN(2) == 0 {
		p.copied()
	}
	p.store.namespaceID = func(context.Context, string) (string, error) { return simNamespace, nil }
	p.store.stopped, p.store.stop = p.stopped, func() { p.stopped.canceled = true }
	if f.slots { // they wipe out each other's ids
		p.store.slot, p.store.slots = 0, 1
	}
	at.process = p
	f.tick(p)
}

// copied gives a process the name and the next numbers of another one, as a copy of its
// machine has them.
func (p *process) copied() {
	for _, at := range p.fleet.replicas {
		if at != p.replica && at.process != nil {
			of := at.process.store
			p.store.replica = of.self()
			p.store.writes.Store(of.writes.Load())
			p.store.leaseIDs.Store(of.leaseIDs.Load())
		}
	}
}

// die ends a process in the middle of whatever it does. What it sent is under way.
func (p *process) die() {
	p.ended, p.stopped.canceled = true, true
	for _, t := range slices.Clone(p.tasks) {
		t.dead = true
		p.fleet.enter(t, t.end)
	}
	p.tasks, p.waiting = nil, nil
	p.fleet.died(p)
}

// leave ends a process in order: it has no more calls, gives back what it holds on lease,
// and ends when those are over that it has, or a while later.
func (p *process) leave() {
	if p.leaving || p.ended {
		return
	}
	p.leaving = true
	end := p.fleet.now + int64(2*time.Second)
	p.Start(func() {
		p.store.closing.Store(true)
		p.store.returnLeases(p.fleet.newContext(p.stopped, end))
	})
	var wait func()
	wait = func() {
		switch {
		case p.ended:
		case len(p.tasks) > 0 && p.fleet.now < end:
			p.fleet.at(p.fleet.now+int64(10*time.Millisecond), wait)
		default:
			p.die()
			p.fleet.begin(p.replica)
		}
	}
	p.fleet.at(p.fleet.now, wait)
}

// now is the clock of the process's store.
func (p *process) now() time.Time { return p.store.cfg.Now() }

// moment is the time that a call brings with it.
func (p *process) moment() time.Time { return p.clocks.Call() }

// machine is what the clock of the process's machine shows.
func (p *process) machine() time.Time {
	now := p.fleet.now
	mono := now - p.frozen + p.swing(now)
	return clocktest.At(simStart*int64(time.Millisecond)+now+p.skew-p.behind, int64(time.Hour)+mono)
}

const (
	// maxSwing is how far the monotonic clock of a machine may be off, and swingTime for
	// how long it runs too fast, then too slowly: by a part in 50.
	maxSwing  = int64(200 * time.Millisecond)
	swingTime = 50 * maxSwing
)

// swing is how far the monotonic clock is off: it runs too fast for a while, and then too
// slowly for as long.
func (p *process) swing(now int64) int64 {
	at := (now + p.phase) % (2 * swingTime)
	if at > swingTime {
		at = 2*swingTime - at
	}
	return at * p.drift / 1e6
}

// pause stops a process for a while.
func (p *process) pause(d int64) { p.pausedUntil = p.fleet.now + d }

// suspend has a process's machine sleep: its monotonic clock stands still.
func (p *process) suspend(d int64) {
	p.pause(d)
	p.frozen += d
}

// freeze stops a process's machine, and both of its clocks.
func (p *process) freeze(d int64) {
	p.suspend(d)
	p.behind += d
	p.fleet.lags(d)
}

// The methods of a loop follow.

func (p *process) Start(run func()) {
	if p.ended {
		return
	}
	t := p.fleet.spawn(p, run)
	p.tasks = append(p.tasks, t)
	t.wake(p.fleet.now + p.fleet.r.Int64N(int64(20*time.Microsecond)))
}

func (p *process) Yield() {
	p.fleet.running.wake(p.fleet.now)
	p.fleet.park()
}

func (p *process) Wait(ctx context.Context, done <-chan struct{}) error {
	for t := p.fleet.running; ; {
		select {
		case <-done:
			return nil
		default:
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p.waiting = append(p.waiting, wait{t, t.stops, done})
		if end := endOf(ctx); end != never {
			t.wake(end)
		}
		if !p.fleet.park() {
			return context.Canceled
		}
	}
}

// rouse wakes the tasks whose channel was closed.
func (p *process) rouse() {
	p.waiting = slices.DeleteFunc(p.waiting, func(w wait) bool {
		if w.task.stops != w.stop {
			return true // it ended by its context
		}
		select {
		case <-w.done:
			w.task.wake(p.fleet.now)
			return true
		default:
			return false
		}
	})
}

func (p *process) Sleep(ctx context.Context, d time.Duration) error {
	if endOf(ctx)-p.fleet.now <= int64(d) {
		return context.DeadlineExceeded
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.fleet.running.wake(p.fleet.now + int64(d))
	if !p.fleet.park() {
		return context.Canceled
	}
	return nil
}

func (p *process) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := p.fleet.newContext(ctx, p.fleet.now+int64(d))
	return c, func() { c.canceled = true }
}

func (p *process) Draw(n int64) int64 {
	if p.fleet.unsalted && n == salts {
		return 0
	}
	return p.fleet.r.Int64N(n)
}

// knows returns the limits of a bucket as a process knows them.
func (p *process) knows(b *simBucket) (*limiter.Limits, uint64) {
	i := p.latest[b.index]
	return b.versions[i], uint64(i) + 1 // #nosec G115 -- few
}

// sabotage does to the lanes of a process what a run without a rule does.
func (f *fleet) sabotage(p *process) {
	if f.lane == nil || p.ended {
		return
	}
	for _, b := range f.buckets {
		for _, pk := range b.keys {
			if l := p.store.lanes.shard(pk).lanes[pk]; l != nil {
				f.lane(p, l)
			}
		}
	}
}
