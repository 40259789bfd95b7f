package schema

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// WriteID is the id of a write of an item: four bytes of the replica, and its number
// without leading zeros. No replica gives one to two writes. "" = there is none.
type WriteID string

// maxWriteID is the greatest length of an id: of a replica and of a number.
const maxWriteID = 12

// NewWriteID returns the id of a replica's write with a number, which is above 0.
func NewWriteID(replica uint32, number uint64) WriteID {
	var id [maxWriteID]byte
	binary.BigEndian.PutUint32(id[:], replica)
	binary.BigEndian.PutUint64(id[4:], number)
	first := 4
	for first < len(id)-1 && id[first] == 0 {
		first++
	}
	return WriteID(append(id[:4:4], id[first:]...))
}

// Replica returns the replica that made the write.
func (w WriteID) Replica() uint32 {
	if len(w) < 5 {
		return 0
	}
	return binary.BigEndian.Uint32([]byte(w[:4]))
}

// Number returns the number of the write.
func (w WriteID) Number() uint64 {
	var n uint64
	for i := 4; i < len(w); i++ {
		n = n<<8 | uint64(w[i])
	}
	return n
}

// Turn is the wish of a replica to make an exact write. Replicas that see it write nothing for a while.
// The zero Turn is none.
type Turn struct {
	ID   WriteID       // of the write that asked
	Hold time.Duration // for how long after it no write of others may be applied; whole ms, 0 to MaxHold
}

// MaxHold bounds how long one turn holds back the writes of other replicas.
const MaxHold = 250 * time.Millisecond

// turnSize is how many bytes of a turn precede its id.
const turnSize = 2

// Attribute returns the turn as it stands in an item.
func (t Turn) Attribute() types.AttributeValue {
	raw := binary.BigEndian.AppendUint16(nil, uint16(t.Hold.Milliseconds())) // #nosec G115 -- at most MaxHold
	return &types.AttributeValueMemberB{Value: append(raw, t.ID...)}
}

// Takes are the ids of the last takes of a slot, by channel.
type Takes [ChannelCount]WriteID

// Vacant reports whether no write left an id in a slot.
func (b *Bucket) Vacant(slot int) bool { return b.Slots[slot] == Takes{} && b.Booked[slot] == "" }

// SlotIDs returns the ids of a slot.
func (b *Bucket) SlotIDs(slot int) iter.Seq[WriteID] {
	return func(yield func(WriteID) bool) {
		for _, id := range b.Slots[slot] {
			if id != "" && !yield(id) {
				return
			}
		}
		if id := b.Booked[slot]; id != "" {
			yield(id)
		}
	}
}

// WriteIDs returns the ids of all writes that a state shows.
func (b *Bucket) WriteIDs() iter.Seq[WriteID] {
	return func(yield func(WriteID) bool) {
		for i := range b.Slots {
			for id := range b.SlotIDs(i) {
				if !yield(id) {
					return
				}
			}
		}
	}
}
