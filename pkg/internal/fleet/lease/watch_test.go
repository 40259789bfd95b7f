package lease

import (
	"slices"
	"testing"
)

func TestWatch(t *testing.T) {
	var w Watch
	w.Seen(1000, []SlotID{{1, 5}, {2, 7}})
	w.Seen(4000, []SlotID{{1, 6}, {2, 7}})
	if id, ok := w.Dead(1000 + ReapAfter - 1); ok {
		t.Errorf("replica %d is dead too early", id)
	}
	if id, ok := w.Dead(1000 + ReapAfter); !ok || id != 2 {
		t.Errorf("got %d, %v, want 2", id, ok)
	}
	w.Seen(9000, []SlotID{{1, 6}})
	if id, ok := w.Dead(4000 + ReapAfter); !ok || id != 1 {
		t.Errorf("got %d, %v, want 1", id, ok)
	}
	w.Seen(9500, nil)
	w.Seen(9600, []SlotID{{1, 6}}) // it was away in between
	if id, ok := w.Dead(9600 + ReapAfter - 1); ok {
		t.Errorf("replica %d is dead too early", id)
	}
}

// A replica whose slot is gone is a user of the item for a while.
func TestWatchOfUsers(t *testing.T) {
	var w Watch
	want := func(mono int64, want ...uint32) {
		t.Helper()
		if got := slices.Sorted(w.Users(mono)); !slices.Equal(got, want) {
			t.Errorf("users at %d: got %v, want %v", mono, got, want)
		}
	}
	want(1000)
	w.Seen(1000, []SlotID{{1, 5}, {2, 7}})
	w.Seen(2000, []SlotID{{2, 7}})
	w.Seen(3000, nil)
	want(3000, 1, 2)
	w.Seen(4000, []SlotID{{1, 8}, {3, 1}})
	want(2000+userMemory, 1, 2, 3)
	want(3000+userMemory, 1, 3)
}

// The users that are remembered are bounded.
func TestWatchForgetsUsers(t *testing.T) {
	var w Watch
	for id := range uint32(3 * MaxHolders) {
		w.Seen(int64(id), []SlotID{{id, 1}})
	}
	if got := len(w.gone); got != MaxHolders {
		t.Errorf("%d are remembered, want %d", got, MaxHolders)
	}
	w.Seen(2*userMemory, nil)
	if got := len(w.gone); got != 1 {
		t.Errorf("%d are remembered, want the last one", got)
	}
}
