package schema

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Home returns which of [IndexPartitions] parts of a table an item is in, where the table is in parts. The shards and
// the usage of an entity for a resource are in one. All records of a namespace are in one. Marks of settlements are in
// any. It reports false for an item that stands beside a bucket or beside the records: an audit event, and the record
// of an adjustment.
func Home(k Key) (home int, known bool) {
	if ns, of, ok := ParseUsageKey(k); ok {
		return homeOf(ns, of.Entity, of.Resource), true
	}
	if of, err := BucketOf(k); err == nil {
		return homeOf(of.Namespace, of.Entity, of.Resource), true
	}
	ns, rest, _ := strings.Cut(k.PK, "/")
	switch rest = "/" + rest; {
	case strings.HasPrefix(rest, markPrefix):
		return IndexPartition(k.PK), true
	case strings.HasPrefix(rest, auditPrefix), strings.HasPrefix(rest, oncePrefix):
		return IndexPartition(ns), false
	}
	return IndexPartition(ns), true
}

// IsOnce reports whether a key is that of the record of an adjustment, see [OnceKey].
func IsOnce(k Key) bool { return k.SK == skMark && strings.Contains(k.PK, oncePrefix) }

// HomeOfQuery returns the home of all that a query of this package finds. It reports false where that may be in any.
func HomeOfQuery(q *dynamodb.QueryInput) (home int, known bool) {
	value := func(name string) string {
		if s, ok := q.ExpressionAttributeValues[name].(*types.AttributeValueMemberS); ok {
			return s.Value
		}
		return ""
	}
	pk, sk := value(":pk"), value(":sk")+value(":first") // one of the two is there
	switch index := aws.ToString(q.IndexName); index {
	case "":
		if !strings.HasPrefix(sk, skUsagePrefix) {
			return Home(Key{pk, sk})
		}
		if resource, _, whole := strings.Cut(strings.TrimPrefix(sk, skUsagePrefix), "#"); whole {
			ns, entity, _ := strings.Cut(pk, entityPrefix)
			return homeOf(ns, entity, resource), true
		}
	case IndexNamespace:
		ns, partition, _ := strings.Cut(pk, "#")
		switch of := strings.TrimPrefix(sk, ns); {
		case strings.HasPrefix(of, bucketPrefix), strings.HasPrefix(of, "/USAGE#"):
			return partitionOf(partition)
		case of != "":
			return IndexPartition(ns), true
		}
	case IndexResources:
		if strings.HasPrefix(sk, "BUCKET#") || strings.HasPrefix(sk, "USAGE#") {
			return partitionOf(pk[strings.LastIndexByte(pk, '#')+1:])
		}
	}
	return 0, false
}

// partitionOf reads the partition that the partition key of an index ends in.
func partitionOf(s string) (partition int, ok bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && 0 <= n && n < IndexPartitions
}
