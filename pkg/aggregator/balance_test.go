package aggregator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Processes that come later take shards of those that have more, until the numbers differ by one at most.
// When one crashes the others take its shards. Every record counts once, and none waits longer than a flush.
func TestProcessesShareTheShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const shards = 8
		total := int64(0)
		add := func(n int) {
			for i := range shards {
				r.add(fmt.Sprint("s", i), "", r.fleet, fmt.Sprint("k", i), n)
				total += int64(n)
			}
		}
		add(5)
		a, stopA := r.start("a", nil)
		time.Sleep(time.Minute)
		r.has("alone", a, shards, shards)
		b, stopB := r.start("b", nil)
		add(7)
		time.Sleep(3 * time.Minute)
		r.has("a of two", a, 4, 4)
		r.has("b of two", b, 4, 4)
		c, stopC := r.start("c", nil)
		time.Sleep(3 * time.Minute)
		for name, p := range map[string]*Poller{"a": a, "b": b, "c": c} {
			r.has(name+" of three", p, 2, 3)
		}
		before := r.fences()
		time.Sleep(5 * time.Minute)
		if after := r.fences(); after != before {
			t.Errorf("%d leases went to another process, though their numbers were equal", after-before)
		}
		stopB()
		add(3)
		time.Sleep(3 * time.Minute)
		r.has("a of those that are left", a, 4, 4)
		r.has("c of those that are left", c, 4, 4)
		r.counted("by all", total)
		if s := a.Stats(); s.Losses+s.DeadLetters+s.Failures > 0 {
			t.Errorf("%+v", s)
		}
		stopA()
		stopC()
	})
}

// has requires that a process reads from least to most shards.
func (r *rig) has(which string, p *Poller, least, most int64) {
	r.t.Helper()
	if got := p.Stats().Shards; got < least || got > most {
		r.t.Errorf("%s has %d shards, want %d to %d", which, got, least, most)
	}
}

// fences adds up how often leases got another owner.
func (r *rig) fences() (sum int64) {
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	for _, l := range r.leases.leases {
		sum += l.Fence
	}
	return sum
}
