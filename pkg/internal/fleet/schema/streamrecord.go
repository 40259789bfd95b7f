package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of the leases of the shards of the table's stream. The owner has that of marks.
const (
	attrFence    = "fence"
	attrBeat     = "beat"
	attrPosition = "position" // the sequence number of the last record that is done; absent = none
	attrDone     = "done"     // 1: all records of the shard are done
)

// LeaseAge is how long the lease of a shard of DynamoDB stays that is not written any more. A stream
// drops its shards after a day.
const LeaseAge = 3 * 24 * time.Hour

const skShardPrefix = "#SHARD#"

// streamPK returns the partition key of the leases of a stream. A table has a stream with a new
// label each time that it is switched on.
func streamPK(label string) string { return RegistryNS + "/STREAM#" + EscapeName(label) }

// StreamLeaseKey returns the key of the lease of a shard of a stream.
func StreamLeaseKey(label, shard string) Key {
	return Key{streamPK(label), skShardPrefix + EscapeName(shard)}
}

// QueryStreamLeases finds the leases of a stream.
func QueryStreamLeases(table, label string) *dynamodb.QueryInput {
	return query(table, "", AttrPK, streamPK(label), AttrSK, skShardPrefix)
}

// StreamLeaseItem returns a lease as an item, which expires at a time; zero = never.
func StreamLeaseItem(label string, l *aggregator.Lease, expires time.Time) map[string]types.AttributeValue {
	item := StreamLeaseKey(label, l.Shard).Attributes()
	item[attrFence], item[attrBeat] = NumberAttribute(l.Fence), NumberAttribute(l.Beat)
	if !expires.IsZero() {
		item[AttrTTL] = NumberAttribute(expires.Unix())
	}
	for attr, text := range map[string]string{attrOwner: l.Owner, attrPosition: string(l.Position)} {
		if text != "" {
			item[attr] = TextAttribute(text)
		}
	}
	if l.Done {
		item[attrDone] = NumberAttribute(1)
	}
	return item
}

// PutStreamLease returns the write of [aggregator.Leases.Write]. The lease expires at a time; zero = never.
func PutStreamLease(label string, before, after *aggregator.Lease, expires time.Time) *ItemWrite {
	item := StreamLeaseItem(label, after, expires)
	if before.Beat == 0 {
		return PutNew(item)
	}
	w := NewPut(item)
	w.Require(attrFence, "=", NumberAttribute(before.Fence))
	if after.Fence != before.Fence {
		w.Require(attrBeat, "=", NumberAttribute(before.Beat))
	}
	return w
}

// ParseStreamLease reads a lease. One that cannot be read has a problem.
func ParseStreamLease(table string, item map[string]types.AttributeValue) aggregator.Lease {
	k, err := ItemKey(table, item)
	if err != nil {
		return aggregator.Lease{Problem: err}
	}
	r := NewReader(table, k, item)
	l := aggregator.Lease{
		Owner: r.optionalText(attrOwner), Fence: r.Int(attrFence, 1, MaxTime), Beat: r.Int(attrBeat, 1, MaxTime),
		Position: aggregator.Sequence(r.optionalText(attrPosition)),
	}
	_, l.Done = r.Optional(attrDone, 1, 1)
	if l.Shard, err = unescapeAll(strings.TrimPrefix(k.SK, skShardPrefix)); err != nil {
		r.Fail(AttrSK, "is no key of a lease: %v", err)
	}
	if r.Fault != nil {
		return aggregator.Lease{Shard: l.Shard, Problem: r.Fault}
	}
	return l
}

// IsBucket reports whether a key is of a bucket's item.
func IsBucket(k Key) bool { return k.SK == skState && strings.Contains(k.PK, bucketPrefix) }

// StateKey returns the key of the shard of a bucket with a partition key.
func StateKey(pk string) Key { return Key{pk, skState} }

// BucketOf returns the bucket that a key is of a shard of.
func BucketOf(k Key) (aggregator.Bucket, error) {
	ns, rest, _ := strings.Cut(k.PK, bucketPrefix)
	parts := strings.Split(rest, "#") // entity, resource, the variant if there is one, shard
	if !IsNamespaceID(ns) || k.SK != skState || len(parts) < 3 || len(parts) > 4 || parts[0] == "" || parts[1] == "" {
		return aggregator.Bucket{}, fmt.Errorf("%s is no key of a bucket", k)
	}
	return aggregator.Bucket{Namespace: ns, Entity: parts[0], Resource: parts[1]}, nil
}

// variantOf returns the part of a bucket's key that its own limits and its window make.
func variantOf(k Key) (of limiter.BucketKey) {
	parts := strings.Split(k.PK, "#") // the namespace, entity, resource, the variant if there is one, shard
	if len(parts) != 5 || of.ParseVariant(parts[3]) != nil {
		return limiter.BucketKey{}
	}
	return of
}

// BucketImage reads the part of a bucket's item that usage is made of, see [limiter.BucketKey.Uncounted].
func BucketImage(table string, k Key, item map[string]types.AttributeValue) (*aggregator.Image, error) {
	r := &bucketReader{Reader: NewReader(table, k, item)}
	bucket := variantOf(k)
	image := &aggregator.Image{Consumed: make(map[string]int64), Splitting: item[AttrMoving] != nil}
	image.Taken, _ = r.Optional(AttrLastTake, MinTime, MaxTime)
	image.Exact, _ = r.Optional(AttrAt, MinTime, MaxTime)
	for name := range item {
		limit, suffix, ok := r.limitAttr(name)
		if ok && suffix == LimitConsumed && !bucket.Uncounted(limit) {
			image.Consumed[limit] = r.Int(name, MinTime, MaxTime)
		}
	}
	if r.Fault != nil {
		return nil, r.Fault
	}
	return image, nil
}

// BucketNames returns the names that a bucket's item has in full.
func BucketNames(table string, k Key, item map[string]types.AttributeValue) (aggregator.Names, error) {
	r := NewReader(table, k, item)
	names := aggregator.Names{Entity: r.optionalText(AttrEntity), Resource: r.optionalText(AttrResource)}
	if r.Fault != nil {
		return aggregator.Names{}, r.Fault
	}
	return names, nil
}
