package fleetsim_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// replica is a place where processes run, one after the other. Its clocks are its own.
type replica struct {
	index   int
	skew    int64 // ns, of its clock on the wall
	drift   int64 // of its monotonic clock: ns gained in a million, or lost, by turns
	phase   int64
	process *process
	latest  []int // index of the newest limits that it has, by bucket
	cutOff  int64 // until when messages to DynamoDB and replies are lost
	deaf    bool  // all of them; else half of them

	troubles []trouble
}

// loses reports whether a message or a reply is lost since the replica is cut off.
func (at *replica) loses(f *fleet) bool {
	return at.cutOff > f.now && (at.deaf || f.r.IntN(2) == 0)
}

// process is a run of a replica: an engine and its work. It is the engine's loop.
type process struct {
	*replica

	fleet     *fleet
	engine    *engine.Engine
	stopped   *simContext
	tasks     []*task // in order of their beginning
	waiting   []wait
	ended     bool
	leaves    bool    // it ends cleanly
	atOnce    bool    // its next task begins at once
	drawn     []int64 // the random numbers that it began with
	copied    []int64 // those of the process that it is a copy of
	began     bool
	replied   int64                   // when the last reply came
	lateOwed  map[*limitHistory]int64 // admitted late, and not known to be taken
	late      []lateTake              // admitted late, and not known to be written
	trying    map[string]*streak      // exact writes, by item and kind
	uncounted map[*consumed]int64     // the consumption of its callers that it may not have counted
	settles   []*reservation          // that it settles
	twin      bool                    // another process began with the same numbers
	strange   map[*bucket]int64       // when the last answer said that a lease write was throttled, of which a copy had been applied
	lapsed    map[*bucket]bool        // a lease ended without a return, and no lease write was applied since

	clocks *limiter.Clocks // those of the program
	clock  *awsdb.Clock

	// While it is paused none of its tasks goes on. Its machine may stand still as a
	// whole: asleep, with its monotonic clock, or paused, with both.
	pausedUntil int64
	frozen      int64 // ns that its monotonic clock stood still
	mono        int64 // the last reading of that clock, which never goes back
	awake       int64 // when its machine wakes, or woke last: its leases end, since its clocks differ
	behind      int64 // ns that its wall clock stood still, or was set back
	untold      untold
	slept       slept
	jumped      int64 // when the correction of a clock that drifts last jumped: 0 = never
}

// wait is a task that waits for a channel to be closed.
type wait struct {
	task *task
	stop uint64
	done <-chan struct{}
}

// simNamespace is the id of the one namespace.
const simNamespace = "simulation1"

func namespaceID(context.Context, string) (string, error) { return simNamespace, nil }

// begin starts a process of a replica.
func (f *fleet) begin(at *replica) {
	p := &process{replica: at, fleet: f, replied: f.now, mono: -never, lapsed: make(map[*bucket]bool), strange: make(map[*bucket]int64), trying: make(map[string]*streak)}
	p.stopped = p.newContext(context.Background(), never)
	p.clocks = limiter.NewClocks(p.machine)
	now := p.clocks.Store
	if f.callClock {
		now = p.clocks.Call
	}
	p.clock = awsdb.NewClock(now, 0).WithMaxOffset(24 * time.Hour) // steps are of hours
	if f.on.copies && f.r.IntN(2) == 0 {
		of := f.replicas[f.r.IntN(len(f.replicas))]
		p.copied = of.drawnNumbers()
		if len(p.copied) > 0 {
			p.twin, of.process.twin = true, true
		}
	}
	var err error
	p.engine, err = engine.NewIdle(engine.Config{
		StoreConfig: engine.StoreConfig{
			Table: simTable, ShardUnits: f.shardUnits, Quiet: f.quiet, Leases: f.on.leases, Scripts: f.on.brief, Now: now, Clock: p.clock,
			Logger: slog.New(lossLog{slog.DiscardHandler, p}),
			Observe: func(s awsdb.State) {
				if s.Condition != awsdb.Available {
					p.suffers(f, leaseTerm)
				}
			},
		},
		Items: p.items(), Namespace: namespaceID, Loop: p,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	p.began = true
	at.process = p
	f.after(f.r.Int64N(int64(f.quiet)/4), p.tend)
}

// tend has the engine tend its shards at intervals.
func (p *process) tend() {
	f := p.fleet
	if p.ended || p.leaves {
		return
	}
	if p.pausedUntil <= f.now {
		p.Start(func() { p.engine.Tend(p.machine()) })
	}
	pause := int64(f.quiet) / 4
	if f.leaping-f.now > 60*second { // nothing would change
		pause = 60 * second
	}
	f.after(pause, p.tend)
}

// drawnNumbers are the random numbers that the process of a replica began with, as a copy of
// its machine has them.
func (at *replica) drawnNumbers() []int64 {
	if at.process == nil {
		return nil
	}
	return slices.Clone(at.process.drawn)
}

// die ends a process at any point of its work. Its messages are still under way.
func (p *process) die() {
	if p.ended {
		return
	}
	p.ended, p.stopped.canceled = true, true
	tasks := slices.Clone(p.tasks)
	slices.SortFunc(tasks, func(a, b *task) int { return cmp.Compare(a.begun, b.begun) })
	for _, t := range tasks {
		t.dead = true
		p.fleet.enter(t, t.end)
	}
	p.tasks, p.waiting = nil, nil
	for _, r := range p.settles {
		r.unknown = true
	}
	p.fleet.died(p)
}

// moment is the time that a call of the process brings.
func (p *process) moment() time.Time { return p.clocks.Call() }

// machine is the time that the process's machine shows.
func (p *process) machine() time.Time {
	now := p.fleet.now
	mono := now - p.frozen
	mono += p.swing(mono) // it drifts while it runs
	if mono < p.mono {
		p.fleet.failf("replica %d: the monotonic clock of its machine goes back by %v", p.index, time.Duration(p.mono-mono))
	}
	p.mono = mono
	return clocktest.At(simStart*int64(time.Millisecond)+now+p.skew-p.behind, int64(time.Hour)+mono)
}

const (
	// maxSwing is how far the monotonic clock of a machine may be off, and swingTime for
	// how long it runs too fast, then too slowly: by a part in 50.
	maxSwing  = int64(200 * time.Millisecond)
	swingTime = 50 * maxSwing
)

// swing is how far the monotonic clock is off after a time that it ran: it runs too fast for a while, and then too
// slowly for as long.
func (p *process) swing(ran int64) int64 {
	at := (ran + p.phase) % (2 * swingTime)
	if at > swingTime {
		at = 2*swingTime - at
	}
	return at * p.drift / 1e6
}

// pause stops a process for a while, at least. Calls that came meanwhile are the first that goes on.
func (p *process) pause(d int64) {
	f := p.fleet
	p.suffers(f, d+answersFor)
	if f.now+d <= p.pausedUntil {
		return
	}
	p.pausedUntil = f.now + d
	f.at(p.pausedUntil, func() {
		if p.ended || p.leaves || f.over || p.pausedUntil > f.now || f.leaping > f.now {
			return
		}
		for range 1 + f.r.IntN(maxStalled) {
			p.atOnce = true
			f.call(p)
			p.atOnce = false
		}
	})
}

// maxStalled is how many calls wait at most for a process that stands still.
const maxStalled = 8

// suspend has a process's machine sleep: its monotonic clock stands still. It reports false where the machine
// sleeps already. A second sleep would set that clock back: it stands still for no longer than time goes by.
func (p *process) suspend(d int64) bool {
	if p.awake > p.fleet.now {
		return false
	}
	p.pause(d)
	p.frozen += d
	p.awake = p.fleet.now + d
	p.slept.length += d
	return true
}

// freeze stops a process's machine, and both of its clocks.
func (p *process) freeze(d int64) {
	if !p.suspend(d) {
		return
	}
	p.behind += d
	p.untold = p.untold.and(p.fleet.now, d)
	p.fleet.lags(d)
}

// The methods of a loop follow.

func (p *process) Start(run func()) {
	if p.ended {
		return
	}
	t := p.fleet.spawn(p, run)
	t.place, t.begun = len(p.tasks), p.fleet.eventLoop.count
	p.tasks = append(p.tasks, t)
	if p.atOnce {
		p.atOnce = false // its own tasks do not
		t.goOn(t.stops)
		return
	}
	t.wake(p.fleet.now + p.fleet.r.Int64N(int64(20*time.Microsecond)))
}

// done takes a task out of those of the process.
func (p *process) done(t *task) {
	last := len(p.tasks) - 1
	p.tasks[t.place], p.tasks[last].place = p.tasks[last], t.place
	p.tasks[last] = nil
	p.tasks = p.tasks[:last]
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
		p.fleet.park()
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
	p.fleet.park()
	return ctx.Err()
}

func (p *process) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := p.newContext(ctx, p.fleet.now+int64(d))
	return c, func() { c.canceled = true }
}

func (p *process) Draw(n int64) int64 {
	if i := len(p.drawn); !p.began && i < len(p.copied) {
		p.drawn = append(p.drawn, p.copied[i])
		return p.copied[i] % n
	}
	x := p.fleet.r.Int64N(n)
	if !p.began {
		p.drawn = append(p.drawn, x)
	}
	return x
}

// knows returns the limits of a bucket that a process has.
func (p *process) knows(b *bucket) (*limiter.Limits, uint64) {
	i := p.latest[b.index]
	return b.versions[i], uint64(i) + 1 // #nosec G115 -- few
}
