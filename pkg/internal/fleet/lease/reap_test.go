package lease

import "testing"

// A lease is over by its holder's clocks before another replica frees it, also where
// clocks differ by an eighth.
func TestALeaseIsOverBeforeItIsFreed(t *testing.T) {
	held := candidate{sent: Clock{}}
	var w Watch
	slot := []SlotID{{Replica: 1, Seq: 1}}
	w.Seen(0, slot) // at once, on the watcher's clock
	for mono := int64(0); ; mono++ {
		own := mono * 8 / 9
		_, dead := w.Dead(mono)
		if dead && held.alive(Clock{Mono: own, Wall: own}) {
			t.Fatalf("it is freed after %d ms, and served %d ms after the send", mono, own)
		}
		if dead {
			return
		}
	}
}
