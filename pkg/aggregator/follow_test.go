package aggregator

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// replace ends the stream as switching it off and on does. move gives the rig another one, with leases of its own.
func (r *rig) replace(gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = gone
	r.off = true
	r.move = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leases.mu.Lock()
		defer r.leases.mu.Unlock()
		r.shards, r.gone, r.move = nil, false, nil
		r.leases.leases = map[string]Lease{}
	}
}

// on has the table have the other stream.
func (r *rig) on() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = false
}

// A stream that is switched off is read to its end. Where the table has another one, the process goes on with that, and
// says meanwhile that there is none.
func TestAnotherStream(t *testing.T) {
	for name, gone := range map[string]bool{"that was read": false, "that is gone": true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.add("s", "", r.fleet, "k", 5)
			var log strings.Builder
			p, stop := r.start("a", func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			time.Sleep(time.Minute)
			r.close("s")
			time.Sleep(time.Minute)
			r.replace(gone)
			if time.Sleep(time.Minute); !p.Stats().Missing {
				t.Errorf("%s: nothing says that there is no stream", name)
			}
			r.on()
			time.Sleep(time.Minute)
			if p.Stats().Missing {
				t.Errorf("%s: the other stream is not found", name)
			}
			r.add("s2", "", r.fleet, "k", 4)
			time.Sleep(time.Minute)
			r.counted(name, 9)
			if s := p.Stats(); s.Shards != 1 || s.Losses != 0 {
				t.Errorf("%s: %+v", name, s)
			}
			stop()
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "another stream") {
				t.Errorf("%s: log:\n%s", name, log.String())
			}
		})
	}
}

// Where a stream goes away with records that were not read, one process counts them as lost, once for each shard.
func TestLossesOfAStreamThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 5)
		r.add("s2", "", r.fleet, "k2", 5)
		a, stopA := r.start("a", nil)
		time.Sleep(time.Second)
		b, stopB := r.start("b", nil)
		time.Sleep(5 * time.Minute)
		r.mu.Lock()
		r.gone, r.off, r.move = true, false, nil
		r.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if s, s2 := a.Stats(), b.Stats(); s.Losses+s2.Losses != 0 {
			t.Errorf("losses of a stream that may come back: %+v, %+v", s, s2)
		}
		stopB()
		r.replace(true)
		r.on()
		time.Sleep(2 * time.Minute)
		if s := a.Stats(); s.Losses != 2 {
			t.Errorf("%+v", s)
		}
		stopA()
	})
}

// A lease whose item is removed, as by a ttl that a clock that jumped has written, is taken anew. The shard is read
// again, and each record counts once.
func TestALeaseThatIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 5)
		p, stop := r.start("a", nil)
		time.Sleep(time.Minute)
		r.leases.mu.Lock()
		delete(r.leases.leases, "s")
		r.leases.mu.Unlock()
		r.add("s", "", r.fleet, "k", 3)
		time.Sleep(2 * time.Minute)
		r.counted("by both", 8)
		if s := p.Stats(); s.Shards != 1 || s.Losses != 0 || s.Repeated == 0 {
			t.Errorf("%+v", s)
		}
		stop()
	})
}

// A lease that cannot be read delays its own shard, and is reported. An invalid position has its shard read
// from the first record, which counts nothing twice.
func TestBadLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 5)
		r.add("bad", "", r.fleet, "k2", 7)
		a, stopA := r.start("a", nil)
		time.Sleep(time.Minute)
		stopA()
		r.counted("by the first process", 12)
		r.add("s", "", r.fleet, "k", 3)
		r.add("bad", "", r.fleet, "k2", 2)
		r.add("new", "", r.fleet, "k3", 4)
		r.leases.mu.Lock()
		l := r.leases.leases["s"]
		l.Position = "x"
		r.leases.leases["s"], r.leases.leases["bad"] = l, Lease{Shard: "bad", Problem: errors.New("no number")}
		r.leases.mu.Unlock()
		b, stopB := r.start("b", nil)
		time.Sleep(time.Minute)
		r.counted("without the bad one", 12+3+4)
		if s := b.Stats(); s.Losses != 0 || s.Failures == 0 || s.Repeated == 0 {
			t.Errorf("%+v", s)
		}
		r.leases.mu.Lock()
		delete(r.leases.leases, "bad")
		r.leases.mu.Unlock()
		time.Sleep(time.Minute)
		r.counted("when the bad one is removed", 12+3+4+2)
		stopB()
		if s := a.Stats(); s.Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}
