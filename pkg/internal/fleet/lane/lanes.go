package lane

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Lanes are the lanes of a process, with the messages that they have under way. It is
// safe for concurrent use.
type Lanes struct {
	host
	table

	holding set[*Lane] // lanes that hold something on lease, or may; their locks are taken before its own
}

// New returns lanes. It sends nothing.
func New(cfg Config) *Lanes {
	s := &Lanes{host: host{cfg: cfg, samples: limiter.NewSampledLog(cfg.Logger), began: cfg.Now()}}
	if cfg.Crowded {
		s.crowding = newCrowding(0)
		for range cfg.Parts {
			s.crowds = append(s.crowds, newCrowding(partBound))
		}
	}
	s.self = identity{by: cfg.Loop, logger: cfg.Logger}
	s.self.first = drawReplica(cfg.Loop)
	s.init(cfg.MaxLanes)
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s
}

// Settle waits for messages, and for requests that are owed.
func (s *Lanes) Settle() { s.work.wait() }

// Stop ends all messages and timers, and waits for them. Owed requests, and usage that the items do not
// count, are lost, and counted as such.
func (s *Lanes) Stop() {
	s.stop()
	for _, l := range s.all() {
		l.mu.Lock()
		l.closer.stop(s.cfg.Now())
		s.unlock(l)
	}
	s.work.wait()
	s.timers.wait()
	for _, l := range s.all() {
		l.mu.Lock()
		l.usages.drop()
		l.mu.Unlock()
	}
}

// Send hands a request to the lane of its shard, which decides it at once, or later. It reports
// whether the request has an end, and the lanes keep nothing of it. From now on its site is in
// memory of the lane.
func (s *Lanes) Send(r *Request) (ended bool) {
	l := s.hold(r.Site, r.Index)
	defer l.holds.Add(-1)
	l.mu.Lock()
	defer s.unlock(l)
	r.Site = &l.site
	return l.enter(r, s.cfg.Now())
}

// hold returns the lane of a shard, which is created if there is none. A lane that is held is not
// dropped; the caller takes one from its holds when it is done.
func (s *Lanes) hold(site *Site, index int) *Lane {
	at := site.place(index)
	p := &s.parts[at.part(s.seed)]
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.lanes[at]
	if !ok {
		if len(p.lanes) >= s.most {
			p.evict()
		}
		own := site.clone()
		l = newLane(&s.host, &s.holding, &own, index, own.Key(index), s.created.Add(1))
		p.lanes[own.place(index)] = l
	}
	l.holds.Add(1)
	return l
}

// Sweep drops the lanes of some parts of the table, of which there are of, that have been
// idle since before.
func (s *Lanes) Sweep(part, of int, before time.Time) {
	for i := part; i < tableParts; i += of {
		p := &s.parts[i]
		p.mu.Lock()
		for pk, l := range p.lanes {
			if used, idle := l.idle(); idle && used.Before(before) {
				delete(p.lanes, pk)
			}
		}
		p.mu.Unlock()
	}
}

// Assign gives the lane of a shard a maintenance task.
func (s *Lanes) Assign(site *Site, index int, c TaskKind) { s.assign(site, index, task{TaskKind: c}) }

func (s *Lanes) assign(site *Site, index int, t task) {
	l := s.hold(site, index)
	defer l.holds.Add(-1)
	l.mu.Lock()
	defer s.unlock(l)
	l.used = s.cfg.Now()
	l.keeper.tasks.todo = append(l.keeper.tasks.todo, t)
	l.start()
}

// forward hands the requests that a lane leaves to the shard that stands for it. A request whose caller
// gets a decision on the way, or leaves, is not handed on: the lane has the tokens that it owes.
func (s *Lanes) forward(from *Lane, d *departure) {
	if d == nil {
		return
	}
	s.assign(d.to, d.index, d.task)
	heir := s.hold(d.to, d.index)
	defer heir.holds.Add(-1)
	from.mu.Lock()
	for _, r := range d.requests {
		r.Index = d.index
		r.lane.Store(heir) // its lock guards the request from now on
	}
	from.mu.Unlock()
	heir.mu.Lock()
	defer s.unlock(heir)
	for _, r := range d.requests {
		if r.state != over { // rule: a request with an end is not forwarded
			heir.enter(r, s.cfg.Now())
		}
	}
}
