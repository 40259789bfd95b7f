package dynamo

import (
	"context"
	"fmt"
	"iter"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"

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

// queryChildren finds the entities with a parent.
func queryChildren(table, ns, parent string) *dynamodb.QueryInput {
	return query(table, indexChildren, attrGSI1PK, childrenPK(ns, parent), "", "")
}

// queryResourceBuckets finds the buckets of a resource, in one of indexPartitions parts.
func queryResourceBuckets(table, ns, resource string, partition int) *dynamodb.QueryInput {
	return query(table, indexResources, attrGSI2PK, resourcePK(ns, resource, partition), attrGSI2SK, "BUCKET#")
}

// queryEntityBuckets finds the buckets of an entity.
func queryEntityBuckets(table, ns, entity string) *dynamodb.QueryInput {
	return query(table, indexLimits, attrGSI3PK, entityPK(ns, entity), attrGSI3SK, "BUCKET#")
}

// queryCustomLimits finds the entities with limits of their own for a resource.
func queryCustomLimits(table, ns, resource string) *dynamodb.QueryInput {
	return query(table, indexLimits, attrGSI3PK, customLimitsPK(ns, resource), "", "")
}

// queryNamespace finds everything in a namespace, in one of indexPartitions parts.
func queryNamespace(table, ns string, partition int) *dynamodb.QueryInput {
	return query(table, indexNamespace, attrGSI4PK, everythingPK(ns, partition), "", "")
}

// queryAudit finds the audit events of a subject, as it stands in keys, oldest first.
func queryAudit(table, ns, subject string) *dynamodb.QueryInput {
	return query(table, "", attrPK, auditPK(ns, subject), attrSK, skAuditPrefix)
}

// queryUsage finds the usage snapshots of an entity.
func queryUsage(table, ns, entity string) *dynamodb.QueryInput {
	return query(table, "", attrPK, entityPK(ns, entity), attrSK, skUsagePrefix)
}

// queryEntityLimits finds the limits of an entity, for every resource.
func queryEntityLimits(table, ns, entity string) *dynamodb.QueryInput {
	return query(table, "", attrPK, entityPK(ns, entity), attrSK, skConfigPrefix)
}

// queryChanges finds what the generations from first to last changed.
func queryChanges(table, ns string, first, last uint64) *dynamodb.QueryInput {
	q := query(table, "", attrPK, systemPK(ns), "", "")
	q.KeyConditionExpression = aws.String("#pk = :pk AND #sk BETWEEN :first AND :last")
	q.ExpressionAttributeNames["#sk"] = attrSK
	q.ExpressionAttributeValues[":first"] = &types.AttributeValueMemberS{Value: changeKey(ns, first).sk}
	q.ExpressionAttributeValues[":last"] = &types.AttributeValueMemberS{Value: changeKey(ns, last).sk}
	return q
}

// items runs a query to its end, page by page, unless the caller stops it. After
// an error, which is the last that it yields, the items are incomplete.
func items(ctx context.Context, client Client, q *dynamodb.QueryInput) iter.Seq2[map[string]types.AttributeValue, error] {
	return func(yield func(map[string]types.AttributeValue, error) bool) {
		page := *q
		for try := 0; ; {
			out, err := client.Query(ctx, &page)
			if err != nil {
				if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, awsdb.Goroutines{}, &try, err) {
					yield(nil, fmt.Errorf("query of table %s: %w", *q.TableName, err))
					return
				}
				continue
			}
			for _, item := range out.Items {
				if !yield(item, nil) {
					return
				}
			}
			if len(out.LastEvaluatedKey) == 0 {
				return
			}
			page.ExclusiveStartKey, try = out.LastEvaluatedKey, 0
		}
	}
}

// itemKey returns the primary key of an item that was read.
func itemKey(table string, item map[string]types.AttributeValue) (key, error) {
	r := newRecordReader(table, key{}, item)
	k := key{r.text(attrPK), r.text(attrSK)}
	if r.fault != nil {
		return key{}, r.fault
	}
	return k, nil
}
