package schema_test

import (
	"strconv"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Each slot has names of its own: the attribute with its digit, and the letter of a channel but for the first.
func TestNamesOfSlots(t *testing.T) {
	t.Parallel()
	for slot := range schema.SlotCount {
		if got, want := schema.BookedAttr(slot), schema.AttrBooked+strconv.Itoa(slot); got != want {
			t.Errorf("BookedAttr(%d) is %q, want %q", slot, got, want)
		}
		for channel, letter := range []string{"", "a", "b", "c"}[:schema.ChannelCount] {
			if got, want := schema.SlotAttr(slot, channel), schema.AttrSlot+strconv.Itoa(slot)+letter; got != want {
				t.Errorf("SlotAttr(%d, %d) is %q, want %q", slot, channel, got, want)
			}
		}
	}
}
