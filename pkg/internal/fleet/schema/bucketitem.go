package schema

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxBucketName is the longest name that a bucket's item has in full, in bytes. Every
// decision pays for each kilobyte of its item, and clients choose names.
const maxBucketName = 256

// NewBucketItem returns the keys of a new item of a bucket in the namespace with an id:
// that of the table, those of the indexes, and the names that the key does not hold in
// full. A write of a plan fills in the rest.
func NewBucketItem(ns string, of limiter.BucketKey, shard int) map[string]types.AttributeValue {
	item := BucketKey(ns, of, shard).Attributes()
	for attr, v := range BucketIndexes(ns, of, shard) {
		item[attr] = &types.AttributeValueMemberS{Value: v}
	}
	for attr, name := range map[string]string{AttrEntity: of.Entity, AttrResource: of.Resource} {
		if len(name) <= maxBucketName && IsHashed(name) {
			item[attr] = NameAttribute(name)
		}
	}
	return item
}
