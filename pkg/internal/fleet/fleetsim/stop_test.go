package fleetsim_test

import (
	"slices"
	"time"
)

// rollout has a new process take the place of a replica's, which ends cleanly beside it. With
// changing limits the new one may know other limits at once.
func (f *fleet) rollout(at *replica) {
	old := at.process
	if f.on.adopt && f.r.IntN(2) == 0 {
		b := f.buckets[f.r.IntN(len(f.buckets))]
		f.change(b)
		at.latest[b.index] = len(b.versions) - 1
	}
	f.begin(at)
	old.leave()
}

// drainTime is how long a process that ends cleanly waits at most, as the service does by default.
const drainTime = 5 * time.Second

// leave has a process end cleanly: it takes no calls, returns its leases, and writes its owed
// requests.
func (p *process) leave() {
	f, began := p.fleet, p.fleet.now
	p.leaves = true
	f.leaving = append(f.leaving, p)
	p.Start(func() {
		ctx := p.newContext(p.stopped, f.now+int64(drainTime))
		p.engine.Leave(ctx)
		held := p.engine.Stats().Leases
		took := f.now - began - p.suffered(began, f.now)
		f.seen["left in order"]++
		if bound := f.promptly() + f.promptly(); took > bound && !f.crowded() && !p.twin {
			f.failInTime("replica %d: it gives back its leases in %v when it ends, which are to be back within %v; %d are not", p.index, time.Duration(took), time.Duration(bound), held)
		}
		for ctx.Err() == nil && (p.engine.Stats().Owed > 0 || p.asks() || p.engine.Stats().Leases > 0) {
			if p.Sleep(ctx, time.Millisecond) != nil {
				break
			}
		}
		p.ends(held)
	})
}

// asks reports whether calls of the process are under way.
func (p *process) asks() bool {
	return slices.ContainsFunc(p.fleet.calls, func(c *call) bool { return c.process == p })
}

// ends ends a process that has left. It owes no requests then, unless it had trouble.
func (p *process) ends(held int64) {
	f := p.fleet
	f.leaving = slices.DeleteFunc(f.leaving, func(other *process) bool { return other == p })
	if owed := p.engine.Stats().Owed; (owed > 0 || held > 0) && p.suffered(f.now-int64(drainTime), f.now) < leaseTrouble && !p.twin {
		f.failInTime("replica %d: it ends in order and owes %d requests and %d leases", p.index, owed, held)
	} else if owed == 0 {
		p.lateOwed = nil
		p.paysAll()
		if p.engine.Stats().Leases == 0 {
			p.uncounted = nil
		}
		for i := range f.held { // it was given back, or was never taken
			if f.held[i].process == p {
				f.held[i].paid = true
			}
		}
	}
	f.after(0, p.die) // by no task of its own
}
