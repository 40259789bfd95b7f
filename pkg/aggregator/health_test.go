package aggregator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A shard that the stream has dropped while its worker could not read it is one gap: the work on it ends, and
// the records read before count.
func TestADroppedShardEndsItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 6)
		r.add("x", "", r.fleet, "k2", 2)
		p, stop := r.start("a", nil)
		time.Sleep(time.Minute)
		r.breaks(true)
		time.Sleep(30 * time.Hour)
		r.drop("s")
		r.breaks(false)
		time.Sleep(24 * time.Hour)
		s := p.Stats()
		stop()
		r.counted("what was read", 8)
		if l := r.leases.get("s"); s.Losses != 1 || s.Shards != 1 || !l.Done || l.Owner != "" || l.Position == "" {
			t.Errorf("%+v, lease %+v; want one loss, and the lease done", s, l)
		}
		if err := p.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
	})
}

// Records read of a shard that the stream drops count, also where no flush was due.
func TestRecordsOfADroppedShardCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 6)
		p, stop := r.start("a", func(c *Config) { c.FlushAfter = time.Hour })
		time.Sleep(10 * time.Second)
		r.drop("s")
		time.Sleep(time.Minute)
		if s := p.Stats(); s.Losses != 1 {
			t.Errorf("%+v, want the gap behind the records read", s)
		}
		r.counted("what was read", 6)
		stop()
	})
}

// The oldest position is that of the shard that is behind the most. A shard without new records is not behind.
func TestTheOldestPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first, stopFirst := r.start("first", nil)
		second, stopSecond := r.start("second", nil)
		defer stopSecond()
		r.add("a", "", r.fleet, "k1", 3)
		r.add("b", "", r.fleet, "k2", 3)
		time.Sleep(2 * time.Minute)
		for _, p := range []*Poller{first, second} {
			if s := p.Stats(); (s.Shards == 0) != s.Oldest.IsZero() || s.Shards > 0 && time.Since(s.Oldest) > 2*DefaultIdle {
				t.Errorf("%d shards, up to %v at %v", s.Shards, s.Oldest, time.Now())
			}
		}
		r.fails(func(c *Change) (bool, error) {
			if c.Shard == "a" {
				return false, errBroken
			}
			return true, nil
		})
		stuck := time.Now()
		r.follow("a", stuck)
		r.follow("b", stuck)
		time.Sleep(time.Hour)
		stopFirst() // the shards of both are those of the second at last
		time.Sleep(time.Hour)
		if s := second.Stats(); s.Shards != 2 || s.Oldest.After(stuck) || s.Oldest.Before(stuck.Add(-time.Minute)) {
			t.Errorf("%+v: one shard stands since %v", s, stuck)
		}
	})
}

// follow adds a record of a time to a shard.
func (s *stream) follow(shard string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[shard][len(s.records[shard])-1]
	r.Sequence, r.Time, r.Old = r.Sequence+"0", at, r.New
	r.New = &Image{Consumed: map[string]int64{"rpm": r.New.Consumed["rpm"] + 1}, Taken: at.UnixMilli()}
	s.records[shard] = append(s.records[shard], r)
}

// fails sets the faults of snapshots.
func (r *rig) fails(fault func(*Change) (bool, error)) {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	r.to.fault = fault
}

// breaks has all calls of the stream fail, or not.
func (s *stream) breaks(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// A process is ready from the first list of shards on, until calls fail for longer than Patience. The reason names the call.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 3)
		r.broken = true
		p, stop := r.start("a", nil)
		defer stop()
		wants := func(when, want string) {
			t.Helper()
			if err := p.Ready(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: ready %v, want %q", when, err, want)
			}
			if err := p.Alive(); err != nil {
				t.Errorf("%s: alive %v", when, err)
			}
		}
		time.Sleep(time.Second)
		wants("before the first list", "cannot be listed")
		r.breaks(false)
		time.Sleep(time.Minute)
		wants("with a list", "")
		r.breaks(true)
		time.Sleep(Patience - time.Second)
		wants("in a short outage", "")
		time.Sleep(DefaultRescan + 2*time.Second)
		wants("in a long outage", "cannot be")
		r.breaks(false)
		time.Sleep(time.Minute)
		wants("after it", "")
		r.fails(func(*Change) (bool, error) { return false, limiter.ErrUnavailable })
		r.add("s", "", r.fleet, "k", 3)
		time.Sleep(Patience + time.Minute)
		wants("while usage cannot be written", "shard s: usage cannot be written")
		r.fails(nil)
		time.Sleep(time.Minute)
		wants("at the end", "")
	})
}

// blockedLeases never answer, with any context.
type blockedLeases struct {
	Leases

	answer chan struct{}
}

func (l blockedLeases) List(ctx context.Context) ([]Lease, error) {
	<-l.answer
	return l.Leases.List(ctx)
}

// A loop that hangs is not alive.
func TestAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		answer := make(chan struct{})
		p, stop := r.start("a", func(cfg *Config) { cfg.Leases = blockedLeases{r.leases, answer} })
		time.Sleep(Patience - time.Second)
		if err := p.Alive(); err != nil {
			t.Errorf("soon: %v", err)
		}
		time.Sleep(time.Minute)
		if err := p.Alive(); err == nil || !errors.Is(p.Ready(), errNotListed) {
			t.Errorf("later: alive %v, ready %v", err, p.Ready())
		}
		close(answer)
		synctest.Wait()
		if err := errors.Join(p.Alive(), p.Ready()); err != nil {
			t.Errorf("after an answer: %v", err)
		}
		stop()
	})
}
