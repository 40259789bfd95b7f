package items

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// skClaim is the sort key of the claim of a record that stands beside a bucket, and attrClaimant has the partition key of
// that bucket.
const skClaim, attrClaimant = "#CLAIM", "of"

// claimed appends the claim of the record of an adjustment to its transaction, and returns which write the record is. The
// claim is with the first write, in the place of the namespace, and refuses the same record beside another bucket. One
// that stays of a process that ended keeps out no repetition. claimed returns -1 where there is no such record.
func claimed(writes []write) (with []write, record int) {
	bucket := slices.IndexFunc(writes, func(w write) bool { return schema.IsBucket(w.itemKey()) })
	record = slices.IndexFunc(writes, func(w write) bool { return w.Kind == schema.Put && schema.IsOnce(w.itemKey()) })
	if bucket < 0 || record < 0 {
		return writes, -1
	}
	c := writes[record]
	c.claimant = writes[bucket].Key.PK // rule: one record stands beside one bucket
	return append(slices.Clone(writes), c), record
}
