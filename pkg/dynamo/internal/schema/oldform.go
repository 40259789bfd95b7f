package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// OldForm is the part of a state that only the item of a bucket in form 1 has. Such an item has attribute rf, and no n. It is never changed.
//
// Attributes of form 1 that form 2 has not, or has differently:
//
//	rf             time of the last refill of all limits that are not dormant, Unix ms
//	lw0 .. lw7     string: id of the last write of the replicas of that slot, "{replica}:{number}"
//	lc0 .. lc7     string: id of the last charge or refund of the replicas of that slot
//	wt             string: id of the last write that asked other replicas to let it pass
//	ls_{replica}   string: the lease of a replica, "{id} {limit}={millitokens, base 36} ..."
//	b_{limit}_tk   balance at rf, millitokens
//	b_{limit}_rm   remainder at rf, in 1/period of a millitoken
//	b_{limit}_h    millitokens out on all leases; absent = 0
//	b_{limit}_rf   time of the last refill of a dormant limit, Unix ms
//
// # The version of an item
//
// Each write of a replica of version 1 adds at least 1 to wcu, or raises ep:
//
//	take, charge, refund, lease, change of limits   wcu + units of the write
//	request for a turn                              wcu + units of the write
//	split                                           wcu + units of the write, ep + 1
//	clear after a split                             wcu + 1
//	retire, absorb                                  ep + 1 or more
//	create, make                                    no wcu; a new ep: a time, or the birth of the shard
//
// Nothing lowers either. So no two states of an item have the same ep and wcu, and a
// condition on both is one on the whole item. A later state has the greater pair: such a
// state has Serial = wcu + 1.
type OldForm struct {
	// Item has the attributes of the item that a write may change, as they were read; nil
	// where there is no item yet.
	Item map[string]types.AttributeValue
	// Counted reports whether the item has wcu.
	Counted bool
	// Balances are the limits at their last refill, by name. Tokens may be above the room,
	// after refunds.
	Balances map[string]tokenbucket.Bucket
	// Leases are those of the replicas, in order of their names.
	Leases []OldLease
}

// OldLease is the lease of one replica of version 1: tokens that it alone gives. A holder
// serves it for 5 s after it sent the write that left this text, and no longer.
type OldLease struct {
	Replica string
	Text    string // of the slot; no lease of a replica has that of another one
	Amounts []OldAmount
}

// OldAmount is an amount of one limit on a lease.
type OldAmount struct {
	Limit       string
	Millitokens int64
}

// oldLeased reports whether tokens are out on leases of form 1.
func (b *Bucket) oldLeased() bool {
	for i := range b.Balances {
		if b.Balances[i].Leased > 0 {
			return true
		}
	}
	return len(b.Old.Leases) > 0
}

// Converts reports whether an item of form 1 can be written in form 2: no lease of form 1
// is out, for form 2 has no place for one.
func (b *Bucket) Converts() bool { return b.Old != nil && !b.oldLeased() }

// LeasedOf returns the millitokens of a limit that are out on lease, by the slots.
func (o *OldForm) LeasedOf(limit string) int64 {
	var sum int64
	for i := range o.Leases {
		for _, a := range o.Leases[i].Amounts {
			if a.Limit == limit {
				sum += a.Millitokens
			}
		}
	}
	return sum
}

// attrOldLease and the name of a replica is the attribute of a lease.
const attrOldLease = "ls_"

// isOldState reports whether an attribute of an item of form 1 is one that writes of a
// state set or remove: none of the keys and names, and none that is counted only.
func isOldState(attr string) bool {
	switch attr {
	case AttrRefilled, AttrVersion, AttrGeneration, AttrLastTake, AttrTTL, AttrShardCount, AttrLevel, AttrEpoch, AttrBirth,
		AttrMoving, AttrRetired, AttrTurn, AttrForgotten, AttrUseBefore:
		return true
	}
	if strings.HasPrefix(attr, LimitPrefix) {
		return !strings.HasSuffix(attr, "_"+LimitConsumed)
	}
	for _, prefix := range [...]string{AttrSlot, AttrBooked, attrChild} {
		if digits, ok := strings.CutPrefix(attr, prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return strings.HasPrefix(attr, attrOldLease)
}

// oldNumberBase is the base of the numbers in ids of writes, as version 1 reads them.
const oldNumberBase = 36

// oldID returns the id of a write as form 1 has it: the text before the colon names
// the replica. An id of version 1 stays as it was read.
func (w WriteID) oldID() string {
	if w.Old() {
		return strings.TrimRight(string(w), oldPadding)
	}
	return fmt.Sprintf("%08x:%s", w.Replica(), strconv.FormatUint(w.Number(), oldNumberBase))
}

// oldPadding makes an id of version 1 longer than all of this one.
const oldPadding = "\x00"

// Old reports whether the id was read from an item of form 1, and is of a replica of
// version 1.
func (w WriteID) Old() bool { return len(w) > maxWriteID }

// OldReplica returns the name of the replica of version 1 whose id it is.
func (w WriteID) OldReplica() string {
	replica, _, _ := strings.Cut(w.oldID(), ":")
	return replica
}

// OldWriters returns the ids of the last writes of an item of form 1, by slot, those of
// charges and refunds behind the others; nil for an item of form 2. An id that cannot be
// read is "".
func OldWriters(item map[string]types.AttributeValue) []WriteID {
	if _, old := item[AttrRefilled]; !old {
		return nil
	}
	ids := make([]WriteID, 2*SlotCount)
	for i := range SlotCount {
		for j, attr := range [...]string{SlotAttr(i, 0), BookedAttr(i)} {
			if s, ok := item[attr].(*types.AttributeValueMemberS); ok {
				ids[i+j*SlotCount] = readOldID(s.Value)
			}
		}
	}
	return ids
}

// OldAttribute returns the id as an attribute of form 1.
func (w WriteID) OldAttribute() types.AttributeValue {
	return &types.AttributeValueMemberS{Value: w.oldID()}
}

// readOldID undoes oldID. An id of version 1 becomes one of the same bytes, padded.
func readOldID(text string) WriteID {
	replica, number, found := strings.Cut(text, ":")
	if r, err := strconv.ParseUint(replica, 16, 32); found && err == nil && len(replica) == 8 {
		n, err := strconv.ParseUint(number, oldNumberBase, 64)
		if id := NewWriteID(uint32(r), n); err == nil && id.oldID() == text {
			return id
		}
	}
	return WriteID(text + strings.Repeat(oldPadding, max(0, maxWriteID+1-len(text))))
}
