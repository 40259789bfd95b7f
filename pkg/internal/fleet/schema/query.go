package schema

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The access patterns that are queries; those of single items are the functions
// of key.go. Attribute names go through placeholders.

// query returns a query for the items of a partition whose sort key begins with
// prefix, "" for all of them. index "" is the table itself, read consistently.
func query(table, index, pkAttr, pk, skAttr, prefix string) *dynamodb.QueryInput {
	q := &dynamodb.QueryInput{
		TableName:                &table,
		KeyConditionExpression:   aws.String("#pk = :pk"),
		ExpressionAttributeNames: map[string]string{"#pk": pkAttr},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": &types.AttributeValueMemberS{Value: pk},
		},
	}
	if index == "" {
		q.ConsistentRead = aws.Bool(true)
	} else {
		q.IndexName = &index
	}
	if prefix != "" {
		q.KeyConditionExpression = aws.String("#pk = :pk AND begins_with(#sk, :sk)")
		q.ExpressionAttributeNames["#sk"] = skAttr
		q.ExpressionAttributeValues[":sk"] = &types.AttributeValueMemberS{Value: prefix}
	}
	return q
}

// QueryChildren finds the entities with a parent.
func QueryChildren(table, ns, parent string) *dynamodb.QueryInput {
	return query(table, IndexChildren, AttrGSI1PK, childrenPK(ns, parent), "", "")
}

// QueryCustomLimits finds the entities with limits of their own for a resource.
func QueryCustomLimits(table, ns, resource string) *dynamodb.QueryInput {
	return query(table, IndexLimits, AttrGSI3PK, customLimitsPK(ns, resource), "", "")
}

// RecordKind is a kind of records that are listed apart from all others.
type RecordKind uint8

// The kinds.
const (
	Entities RecordKind = iota
	EntityLimits
	ResourceLimits
)

// QueryRecords finds the records of a kind, in one of [IndexPartitions] parts of a namespace.
func QueryRecords(table, ns string, kind RecordKind, partition int) *dynamodb.QueryInput {
	prefix := [...]string{Entities: entityPrefix, EntityLimits: entityLimitsPrefix, ResourceLimits: resourcePrefix}[kind]
	return query(table, IndexNamespace, AttrGSI4PK, EverythingPK(ns, partition), AttrGSI4SK, ns+prefix)
}

// QueryDisabled finds the records of what is disabled in a namespace.
func QueryDisabled(table, ns string) *dynamodb.QueryInput {
	return query(table, IndexResources, AttrGSI2PK, disabledPK(ns), "", "")
}

// QueryNamespace finds everything in a namespace, in one of [IndexPartitions] parts.
func QueryNamespace(table, ns string, partition int) *dynamodb.QueryInput {
	return query(table, IndexNamespace, AttrGSI4PK, EverythingPK(ns, partition), "", "")
}

// QueryEntityLimits finds the limits of an entity, for every resource.
func QueryEntityLimits(table, ns, entity string) *dynamodb.QueryInput {
	return query(table, "", AttrPK, entityPK(ns, entity), AttrSK, skConfigPrefix)
}

// QueryBuckets finds the keys of the buckets in a namespace, in one of [IndexPartitions] parts.
func QueryBuckets(table, ns string, partition int) *dynamodb.QueryInput {
	return query(table, IndexNamespace, AttrGSI4PK, EverythingPK(ns, partition), AttrGSI4SK, ns+"/BUCKET#")
}

// QueryEntityBuckets finds the keys of the buckets of an entity, or of that for one resource;
// "" = all. Shards of a bucket follow each other.
func QueryEntityBuckets(table, ns, entity, resource string) *dynamodb.QueryInput {
	prefix := "BUCKET#"
	if resource != "" {
		prefix += EscapeName(resource) + "#"
	}
	return query(table, IndexLimits, AttrGSI3PK, entityPK(ns, entity), AttrGSI3SK, prefix)
}

// QueryResourceBuckets finds the keys of the buckets for a resource, in one of
// [IndexPartitions] parts.
func QueryResourceBuckets(table, ns, resource string, partition int) *dynamodb.QueryInput {
	return query(table, IndexResources, AttrGSI2PK, resourcePK(ns, resource, partition), AttrGSI2SK, "BUCKET#")
}

// QueryNamespaces finds the records of all namespaces by name, in order of their keys.
func QueryNamespaces(table string) *dynamodb.QueryInput {
	return query(table, "", AttrPK, systemPK(RegistryNS), AttrSK, skNamespacePrefix)
}

// QueryNamespaceIDs finds the records of all namespaces by ID, in order of IDs.
func QueryNamespaceIDs(table string) *dynamodb.QueryInput {
	return query(table, "", AttrPK, systemPK(RegistryNS), AttrSK, skNSIDPrefix)
}

// QueryChanges finds the records of the changes of the generations from first to last.
func QueryChanges(table, ns string, first, last uint64) *dynamodb.QueryInput {
	q := query(table, "", AttrPK, systemPK(ns), "", "")
	q.KeyConditionExpression = aws.String("#pk = :pk AND #sk BETWEEN :first AND :last")
	q.ExpressionAttributeNames["#sk"] = AttrSK
	q.ExpressionAttributeValues[":first"] = &types.AttributeValueMemberS{Value: ChangeKey(ns, first).SK}
	q.ExpressionAttributeValues[":last"] = &types.AttributeValueMemberS{Value: ChangeKey(ns, last).SK}
	return q
}
