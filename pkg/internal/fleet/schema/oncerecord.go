package schema

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// attrBooked is the text of limiter.Adjustment.OnceRecord.
const attrBooked = "booked"

// ParseOnce returns the booked text of an adjustment's record. made is whether the item is such a
// record of the last [limiter.OnceAge]; nil is no record.
func ParseOnce(table string, k Key, item map[string]types.AttributeValue, now time.Time) (booked string, made bool, err error) {
	if item == nil {
		return "", false, nil
	}
	r := NewReader(table, k, item)
	at := r.Int(AttrCreatedAt, MinTime, MaxTime)
	booked = r.Text(attrBooked)
	if r.Fault != nil {
		return "", false, r.Fault
	}
	return booked, at > now.Add(-limiter.OnceAge).UnixMilli(), nil
}

// PutOnce returns the write that records an adjustment that is made once, and its booked
// text. It is refused while there is a record of the last [limiter.OnceAge]. The record is in no index, and
// DynamoDB deletes it after an hour more, for clocks that differ.
func PutOnce(k Key, now time.Time, booked string) *ItemWrite {
	item := k.Attributes()
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	item[attrBooked] = &types.AttributeValueMemberS{Value: booked}
	item[AttrTTL] = NumberAttribute(now.Add(limiter.OnceAge + time.Hour).Unix())
	w := PutOrReplace(item)
	w.Require(AttrCreatedAt, "<=", NumberAttribute(now.Add(-limiter.OnceAge).UnixMilli()))
	return w
}
