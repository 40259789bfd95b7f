package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Ten replicas that write as fast as they may stay below what DynamoDB does for one item.
func TestPaceOfTenReplicas(t *testing.T) {
	p := pace{sent: time.Unix(1, 0)}
	for name, flights := range map[string]int{"one under way": 1, "none": 0} {
		if each := p.next(flights, 10).Sub(p.sent); 10*time.Second/each >= 1000 {
			t.Errorf("%s: a write each %v, want fewer than 1,000 a second of ten replicas", name, each)
		}
	}
}

// A slow table is given longer for a reply, and fewer messages.
func TestPaceOfASlowTable(t *testing.T) {
	const least = 100 * time.Millisecond
	p := pace{sent: time.Unix(1, 0)}
	want := func(attempt, pause time.Duration) {
		t.Helper()
		if got := p.attempt(least); got != attempt {
			t.Errorf("an attempt of %v, want %v", got, attempt)
		}
		if got := p.next(1, 1).Sub(p.sent); got != pause {
			t.Errorf("a write each %v, want %v", got, pause)
		}
	}
	want(least, leastPace)
	p.reply(60 * time.Millisecond)
	want(4*60*time.Millisecond, 30*time.Millisecond)
	p.reply(time.Hour)
	want(4*74*time.Millisecond, 37*time.Millisecond)
}

// Replicas that share a slot count, each as long as it writes; the first state tells nothing.
func TestPeers(t *testing.T) {
	const self, others = 5, 12
	var p peers
	now, writes := time.Unix(1, 0), uint64(0)
	slots := make([]schema.WriteID, schema.SlotCount)
	write := func(replica uint32) {
		writes++
		slots[replica%schema.SlotCount] = schema.NewWriteID(replica, writes)
	}
	see := func(want int) {
		t.Helper()
		now = now.Add(10 * time.Millisecond)
		p.observe(slots, self, now)
		if got, _ := p.count(now); got != want {
			t.Errorf("after %v: got %d peers, want %d", now.Sub(time.Unix(1, 0)), got, want)
		}
	}
	write(1)
	see(0)
	write(self)
	see(0)
	for i := range uint32(others) {
		write(100 + i)
		p.observe(slots, self, now)
	}
	see(others)
	now = now.Add(peerMemory)
	see(0)
	write(100)
	see(1)
}

// An older id of a replica in another slot does not hide its newer one.
func TestPeersOfTwoIDs(t *testing.T) {
	var p peers
	now := time.Unix(1, 0)
	p.observe(nil, 1, now)
	for number := range uint64(4) {
		now = now.Add(peerMemory - time.Millisecond)
		p.observe([]schema.WriteID{schema.NewWriteID(2, 10+number), schema.NewWriteID(2, 5)}, 1, now)
		if got, _ := p.count(now); got != 1 {
			t.Fatalf("write %d: got %d peers, want 1", number, got)
		}
	}
}

// One replica of those that write lifts early.
func TestFirstOfPeers(t *testing.T) {
	var p peers
	now := time.Unix(1, 0)
	p.observe(nil, 7, now)
	if !p.first(7, now) {
		t.Error("a replica alone is not the first")
	}
	p.observe([]schema.WriteID{schema.NewWriteID(3, 1), schema.NewWriteID(9, 1)}, 7, now)
	if p.first(7, now) || !p.first(3, now) {
		t.Error("the first is not the one with the lowest number")
	}
	if !p.first(7, now.Add(peerMemory)) {
		t.Error("a replica that is no more is the first")
	}
}
