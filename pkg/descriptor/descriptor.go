package descriptor

import (
	"time"
)

// Entry is one key and value of a descriptor. Both may have any bytes.
type Entry struct{ Key, Value string }

// Descriptor is a list of entries with its amounts.
type Descriptor struct {
	Entries []Entry
	Hits    uint64 // when HitsSet; an explicit 0 is a peek
	HitsSet bool
	Refund  bool   // refunds instead of taking
	Limit   *Limit // replaces the limit that the rule consumes
}

// Limit is a limit that comes with a descriptor.
type Limit struct {
	Requests uint64        // tokens, and capacity; 0 admits nothing
	Period   time.Duration // above 0
}
