package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Replicas that share a slot count, each as long as it writes; the first state has no
// information.
func TestPeers(t *testing.T) {
	const self, others = 5, 12
	var p Peers
	now, writes := time.Unix(1, 0), uint64(0)
	slots := make([]schema.WriteID, schema.SlotCount)
	write := func(replica uint32) {
		writes++
		slots[replica%schema.SlotCount] = schema.NewWriteID(replica, writes)
	}
	see := func(want int) {
		t.Helper()
		now = now.Add(10 * time.Millisecond)
		p.Observe(slots, self, now)
		if got, _ := p.Count(now); got != want {
			t.Errorf("after %v: got %d peers, want %d", now.Sub(time.Unix(1, 0)), got, want)
		}
	}
	write(1)
	see(0)
	write(self)
	see(0)
	for i := range uint32(others) {
		write(100 + i)
		p.Observe(slots, self, now)
	}
	see(others)
	now = now.Add(PeerMemory)
	see(0)
	write(100)
	see(1)
}

// An older id of a replica in another slot does not hide its newer one.
func TestPeersOfTwoIDs(t *testing.T) {
	var p Peers
	now := time.Unix(1, 0)
	p.Observe(nil, 1, now)
	for number := range uint64(4) {
		now = now.Add(PeerMemory - time.Millisecond)
		p.Observe([]schema.WriteID{schema.NewWriteID(2, 10+number), schema.NewWriteID(2, 5)}, 1, now)
		if got, _ := p.Count(now); got != 1 {
			t.Fatalf("write %d: got %d peers, want 1", number, got)
		}
	}
}

// One replica of those that write lifts early.
func TestFirstOfPeers(t *testing.T) {
	var p Peers
	now := time.Unix(1, 0)
	p.Observe(nil, 7, now)
	if !p.First(7, now) {
		t.Error("a replica alone is not the first")
	}
	p.Observe([]schema.WriteID{schema.NewWriteID(3, 1), schema.NewWriteID(9, 1)}, 7, now)
	if p.First(7, now) || !p.First(3, now) {
		t.Error("the first is not the one with the lowest number")
	}
	if !p.First(7, now.Add(PeerMemory)) {
		t.Error("a replica that is no more is the first")
	}
}

func TestPeersAreThoseWhoseIdsChange(t *testing.T) {
	var p Peers
	a, b, c := schema.NewWriteID(2, 1), schema.NewWriteID(3, 1), schema.NewWriteID(4, 1)
	p.Observe([]schema.WriteID{a, b, ""}, 1, paceT0)
	if got, _ := p.Count(paceT0); got != 0 {
		t.Errorf("%d peers by the first state, want 0: it does not show when they wrote", got)
	}
	a = schema.NewWriteID(2, 2)
	p.Observe([]schema.WriteID{a, b, ""}, 1, paceT0.Add(time.Second))
	p.Observe([]schema.WriteID{a, b, c}, 1, paceT0.Add(2*time.Second))
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{2 * time.Second, 2}, {3500 * time.Millisecond, 1}, {5 * time.Second, 0}} {
		if got, _ := p.Count(paceT0.Add(step.after)); got != step.want {
			t.Errorf("after %v: %d peers, want %d", step.after, got, step.want)
		}
	}
}

// An id that changed between two states counts as a replica, and leaves no time to it: it may
// have written long ago.
func TestPeersOfLongAgoDoNotSlowALane(t *testing.T) {
	var p Peers
	slots := func(n uint64) []schema.WriteID {
		return []schema.WriteID{schema.NewWriteID(2, n), schema.NewWriteID(3, n)}
	}
	p.Observe(slots(1), 1, paceT0)
	p.Observe(slots(2), 1, paceT0.Add(time.Second))
	for i, step := range []struct {
		at            time.Duration
		write         uint64
		count, active int
	}{
		{1500 * time.Millisecond, 2, 2, 2},
		{3500 * time.Millisecond, 2, 0, 0},
		{5500 * time.Millisecond, 3, 2, 0}, // at any time of the last 2 s
		{5600 * time.Millisecond, 3, 2, 0},
		{5700 * time.Millisecond, 4, 2, 2}, // within the last 100 ms
	} {
		p.Observe(slots(step.write), 1, paceT0.Add(step.at))
		if count, active := p.Count(paceT0.Add(step.at)); count != step.count || active != step.active {
			t.Errorf("look %d: %d replicas, %d of them active; want %d and %d", i, count, active, step.count, step.active)
		}
	}
}
