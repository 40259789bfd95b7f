package dynamo

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// leaseTick is how often a store looks at what it holds.
const leaseTick = 50 * time.Millisecond

// leases are the lanes of a process that hold something, or may. The lock of a lane's
// shard is taken before theirs.
type leases struct {
	size  atomic.Int64
	mu    sync.RWMutex
	all   []*lane                       // in an order that does not go by chance
	of    map[limiter.BucketKey][]*lane // never changed in place
	owned bool                          // somebody looks at them
}

// keep adds a lane, or removes it. The lane's shard is locked.
func (t *leases) keep(l *lane, holds bool) {
	if l.holder.listed == holds {
		return
	}
	l.holder.listed = holds
	t.mu.Lock()
	defer t.mu.Unlock()
	bucket := l.site.bucket
	if holds {
		if t.of == nil {
			t.of = make(map[limiter.BucketKey][]*lane)
		}
		t.all = append(t.all, l)
		t.of[bucket] = append(slices.Clone(t.of[bucket]), l)
	} else {
		is := func(o *lane) bool { return o == l }
		t.all = slices.DeleteFunc(t.all, is)
		if left := slices.DeleteFunc(slices.Clone(t.of[bucket]), is); len(left) > 0 {
			t.of[bucket] = left
		} else {
			delete(t.of, bucket)
		}
	}
	t.size.Store(int64(len(t.all)))
}

// find returns the lanes of a bucket.
func (t *leases) find(bucket *limiter.BucketKey) []*lane {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.of[*bucket]
}

// list returns all lanes.
func (t *leases) list() []*lane {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.all)
}

// own reports whether the caller has to look at the lanes from now on: there are some,
// and nobody does.
func (t *leases) own() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owned || len(t.all) == 0 {
		return false
	}
	t.owned = true
	return true
}

// disown ends what own began, unless there are lanes to look at.
func (t *leases) disown(anyway bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owned = t.owned && len(t.all) > 0 && !anyway
	return !t.owned
}

// watchLeases has the lanes that hold something looked at as long as there are any. The
// caller holds a piece of work.
func (s *Store) watchLeases() {
	if !s.leases.own() {
		return
	}
	s.work.Add(1)
	s.loop.Start(func() {
		defer s.work.Done()
		for {
			err := s.loop.Sleep(s.stopped, leaseTick)
			if s.leases.disown(err != nil || s.closing.Load()) {
				return
			}
			s.tendLeases(s.cfg.Now())
		}
	})
}

// tendLeases has every lane at work whose lease is to be given back, or is in doubt.
func (s *Store) tendLeases(now time.Time) {
	for _, l := range s.leases.list() {
		if s.wakes(l, now) {
			s.serve(l)
		}
	}
}

// wakes reports whether somebody has to run a lane for its lease.
func (s *Store) wakes(l *lane, now time.Time) bool {
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	switch {
	case !h.busy():
		return false
	case h.text == "":
	case s.closing.Load(), h.policy.None, now.Sub(h.used) >= h.idle:
		h.recall = true
	case !h.recall && h.alive(now, s.era()) && !h.inDoubt():
		return false
	}
	if now.Before(h.retry) {
		return false
	}
	h.wanted = true
	return l.start() != nil
}

// returnLeases gives back all that the store holds, until ctx ends and no longer than
// others need to find out that nobody serves it.
func (s *Store) returnLeases(ctx context.Context) {
	ctx, cancel := s.loop.Within(ctx, leaseTerm)
	defer cancel()
	for s.leases.size.Load() > 0 {
		s.tendLeases(s.cfg.Now())
		if s.loop.Sleep(ctx, time.Millisecond) != nil {
			return
		}
	}
}
