package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// accessPattern is a query of the schema.
type accessPattern struct {
	name      string
	query     *dynamodb.QueryInput
	index     string
	condition string // with the placeholders of attribute names filled in
	values    map[string]string
	finds     []key // of schemaItems
}

func accessPatterns(table string) []accessPattern {
	const ns, begins = testNS, "#pk = :pk AND begins_with(#sk, :sk)"
	hour := windowAt(hourly, time.Date(2024, 1, 31, 14, 0, 0, 0, time.UTC))
	bucket := bucketKey(ns, "user-1", "gpt-4", 0, 0)
	return []accessPattern{
		{"children", queryChildren(table, ns, "org"), "GSI1", "#pk = :pk", map[string]string{"#pk": "GSI1PK", ":pk": ns + "/PARENT#org"}, []key{entityKey(ns, "user-1"), entityKey(ns, "user-2")}},
		{
			"resource capacity", queryResourceBuckets(table, ns, "gpt-4", indexPartition(bucket.pk)), "GSI2", begins,
			map[string]string{"#pk": "GSI2PK", ":pk": fmt.Sprintf("%s/RESOURCE#gpt-4#%d", ns, indexPartition(bucket.pk)), "#sk": "GSI2SK", ":sk": "BUCKET#"},
			[]key{bucket},
		},
		{
			"buckets of an entity", queryEntityBuckets(table, ns, "user-1"), "GSI3", begins,
			map[string]string{"#pk": "GSI3PK", ":pk": ns + "/ENTITY#user-1", "#sk": "GSI3SK", ":sk": "BUCKET#"},
			[]key{bucket, bucketKey(ns, "user-1", "gpt-4o", 0, 0)},
		},
		{
			"entities with custom limits", queryCustomLimits(table, ns, "gpt-4"), "GSI3", "#pk = :pk",
			map[string]string{"#pk": "GSI3PK", ":pk": ns + "/ENTITY_CONFIG#gpt-4"},
			[]key{entityLimitsKey(ns, "user-1", "gpt-4")},
		},
		{
			"everything in a namespace", queryNamespace(table, ns, indexPartition(bucket.pk)), "GSI4", "#pk = :pk",
			map[string]string{"#pk": "GSI4PK", ":pk": fmt.Sprintf("%s#%d", ns, indexPartition(bucket.pk))},
			inPartition(indexPartition(bucket.pk)),
		},
		{
			"audit events", queryAudit(table, ns, "user-1"), "", begins,
			map[string]string{"#pk": "PK", ":pk": ns + "/AUDIT#user-1", "#sk": "SK", ":sk": "#AUDIT#"},
			[]key{auditKey(ns, "user-1", limiter.AuditID(hour.start, 1))},
		},
		{
			"usage snapshots", queryUsage(table, ns, "user-1"), "", begins,
			map[string]string{"#pk": "PK", ":pk": ns + "/ENTITY#user-1", "#sk": "SK", ":sk": "#USAGE#"},
			[]key{usageKey(ns, "user-1", "gpt-4", hour)},
		},
		{
			"limits of an entity", queryEntityLimits(table, ns, "user-1"), "", begins,
			map[string]string{"#pk": "PK", ":pk": ns + "/ENTITY#user-1", "#sk": "SK", ":sk": "#CONFIG#"},
			[]key{entityLimitsKey(ns, "user-1", "_default_"), entityLimitsKey(ns, "user-1", "gpt-4")},
		},
		{
			"changes", queryChanges(table, ns, 9, 10), "", "#pk = :pk AND #sk BETWEEN :first AND :last",
			map[string]string{"#pk": "PK", ":pk": ns + "/SYSTEM#", "#sk": "SK", ":first": "#CHANGE#00000000000000000009", ":last": "#CHANGE#00000000000000000010"},
			[]key{changeKey(ns, 9), changeKey(ns, 10)},
		},
	}
}

// schemaItems returns one item or more of each kind, some in other namespaces.
func schemaItems() map[key]map[string]string {
	const ns, other = testNS, "zzzzzzzzzzz"
	hour := windowAt(hourly, time.Date(2024, 1, 31, 14, 0, 0, 0, time.UTC))
	all := map[key]map[string]string{
		entityKey(ns, "org"):                                   entityIndexes(ns, "org", ""),
		entityKey(ns, "user-1"):                                entityIndexes(ns, "user-1", "org"),
		entityKey(ns, "user-2"):                                entityIndexes(ns, "user-2", "org"),
		entityKey(ns, "user-3"):                                entityIndexes(ns, "user-3", "org#"),
		entityKey(other, "user-1"):                             entityIndexes(other, "user-1", "org"),
		entityLimitsKey(ns, "user-1", "gpt-4"):                 entityLimitsIndexes(ns, "user-1", "gpt-4"),
		entityLimitsKey(ns, "user-1", "_default_"):             entityLimitsIndexes(ns, "user-1", "_default_"),
		entityLimitsKey(other, "user-1", "gpt-4"):              entityLimitsIndexes(other, "user-1", "gpt-4"),
		bucketKey(ns, "user-1", "gpt-4", 0, 0):                 bucketIndexes(ns, "user-1", "gpt-4", 0, 0),
		bucketKey(ns, "user-1", "gpt-4o", 0, 0):                bucketIndexes(ns, "user-1", "gpt-4o", 0, 0),
		bucketKey(other, "user-1", "gpt-4", 0, 0):              bucketIndexes(other, "user-1", "gpt-4", 0, 0),
		usageKey(ns, "user-1", "gpt-4", hour):                  usageIndexes(ns, "user-1", "gpt-4", hour),
		generationKey(ns):                                      {},
		versionKey():                                           {},
		namespaceKey("ns"):                                     {},
		auditKey(ns, "user-1", limiter.AuditID(hour.start, 1)): namespaceIndex(ns, auditKey(ns, "user-1", "")),
		auditKey(ns, "user-2", limiter.AuditID(hour.start, 2)): namespaceIndex(ns, auditKey(ns, "user-2", "")),
	}
	for generation := range uint64(12) {
		all[changeKey(ns, generation)] = namespaceIndex(ns, changeKey(ns, generation))
	}
	return all
}

// inPartition returns the items of the namespace in one part of GSI4.
func inPartition(partition int) []key {
	var keys []key
	for k, indexes := range schemaItems() {
		if indexes[attrGSI4PK] == everythingPK(testNS, partition) {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestAccessPatterns: each query of the schema has the index and the key condition
// that the schema says, and finds in DynamoDB Local what it should, page by page.
func TestAccessPatterns(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	table := dynamotest.TableName(t)
	if _, err := client.CreateTable(t.Context(), TableInput(table)); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	for k, indexes := range schemaItems() {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: newRecord(k, indexes, limiter.SystemLimitsRef())}); err != nil {
			t.Fatalf("PutItem: %v", err)
		}
	}
	for _, test := range accessPatterns(table) {
		t.Run(test.name, func(t *testing.T) {
			if got := aws.ToString(test.query.IndexName); got != test.index {
				t.Errorf("index %q, want %q", got, test.index)
			}
			if got := aws.ToString(test.query.KeyConditionExpression); got != test.condition {
				t.Errorf("key condition %q, want %q", got, test.condition)
			}
			if diff := cmp.Diff(test.values, placeholders(test.query)); diff != "" {
				t.Errorf("placeholders (-want +got):\n%s", diff)
			}
			if got := aws.ToBool(test.query.ConsistentRead); got != (test.index == "") {
				t.Errorf("a consistent read = %t of index %q", got, test.index)
			}
			test.query.Limit = aws.Int32(1) // a page
			var got []key
			for item, err := range items(t.Context(), client, test.query) {
				if err != nil {
					t.Fatalf("query: %v", err)
				}
				k, err := itemKey(table, item)
				if err != nil {
					t.Fatalf("itemKey: %v", err)
				}
				got = append(got, k)
			}
			sortKeys(got)
			sortKeys(test.finds)
			if !slices.Equal(got, test.finds) {
				t.Errorf("found %v, want %v", got, test.finds)
			}
		})
	}
}

func sortKeys(keys []key) {
	slices.SortFunc(keys, func(a, b key) int { return slices.Compare([]string{a.pk, a.sk}, []string{b.pk, b.sk}) })
}

func placeholders(q *dynamodb.QueryInput) map[string]string {
	all := maps.Clone(q.ExpressionAttributeNames)
	for name, value := range q.ExpressionAttributeValues {
		if s, ok := value.(*types.AttributeValueMemberS); ok {
			all[name] = s.Value
		}
	}
	return all
}
