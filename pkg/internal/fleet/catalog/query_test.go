package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// accessPattern is a query of the schema.
type accessPattern struct {
	name      string
	query     *dynamodb.QueryInput
	index     string
	condition string // with the placeholders of attribute names filled in
	values    map[string]string
	finds     []schema.Key // of schemaItems
}

// byPrefix is a query of operators, for the items of an index whose sort key has a prefix.
func byPrefix(table, index, pk, prefix string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &table, IndexName: &index, KeyConditionExpression: aws.String("#pk = :pk AND begins_with(#sk, :sk)"),
		ExpressionAttributeNames:  map[string]string{"#pk": index + "PK", "#sk": index + "SK"},
		ExpressionAttributeValues: attributes{":pk": avS(pk), ":sk": avS(prefix)},
	}
}

func accessPatterns(table string) []accessPattern {
	const ns, begins, between = testNS, "#pk = :pk AND begins_with(#sk, :sk)", "#pk = :pk AND #sk BETWEEN :first AND :last"
	user := limiter.EntityRef("user-1")
	hour := time.Date(2024, 1, 31, 14, 0, 0, 0, time.UTC)
	bucket := schema.BucketKey(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4"}, 0)
	home, _ := schema.Home(bucket)
	return []accessPattern{
		{"children", schema.QueryChildren(table, ns, "org"), "GSI1", "#pk = :pk", map[string]string{"#pk": "GSI1PK", ":pk": ns + "/PARENT#org"}, []schema.Key{schema.EntityKey(ns, "user-1"), schema.EntityKey(ns, "user-2")}},
		{
			"resource capacity", byPrefix(table, "GSI2", ns+fmt.Sprintf("/RESOURCE#gpt-4#%d", home), "BUCKET#"), "GSI2", begins,
			map[string]string{"#pk": "GSI2PK", ":pk": fmt.Sprintf("%s/RESOURCE#gpt-4#%d", ns, home), "#sk": "GSI2SK", ":sk": "BUCKET#"},
			[]schema.Key{bucket},
		},
		{
			"buckets of an entity", byPrefix(table, "GSI3", ns+"/ENTITY#user-1", "BUCKET#"), "GSI3", begins,
			map[string]string{"#pk": "GSI3PK", ":pk": ns + "/ENTITY#user-1", "#sk": "GSI3SK", ":sk": "BUCKET#"},
			[]schema.Key{bucket, schema.BucketKey(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4o"}, 0)},
		},
		{
			"entities with custom limits", schema.QueryCustomLimits(table, ns, "gpt-4"), "GSI3", "#pk = :pk",
			map[string]string{"#pk": "GSI3PK", ":pk": ns + "/ENTITY_CONFIG#gpt-4"},
			[]schema.Key{schema.EntityLimitsKey(ns, "user-1", "gpt-4")},
		},
		{
			"everything in a namespace", schema.QueryNamespace(table, ns, home), "GSI4", "#pk = :pk",
			map[string]string{"#pk": "GSI4PK", ":pk": fmt.Sprintf("%s#%d", ns, home)},
			inPartition(home),
		},
		{
			"entities", schema.QueryRecords(table, ns, schema.Entities, schema.IndexPartition(ns+"/ENTITY#user-1")), "GSI4", begins,
			map[string]string{"#pk": "GSI4PK", ":pk": fmt.Sprintf("%s#%d", ns, schema.IndexPartition(ns+"/ENTITY#user-1")), "#sk": "GSI4SK", ":sk": ns + "/ENTITY#"},
			[]schema.Key{schema.EntityKey(ns, "user-1")},
		},
		{
			"limits of entities", schema.QueryRecords(table, ns, schema.EntityLimits, schema.IndexPartition(ns+"/ENTITY#user-1")), "GSI4", begins,
			map[string]string{"#pk": "GSI4PK", ":pk": fmt.Sprintf("%s#%d", ns, schema.IndexPartition(ns+"/ENTITY#user-1")), "#sk": "GSI4SK", ":sk": ns + "/LIMITS#"},
			[]schema.Key{schema.EntityLimitsKey(ns, "user-1", "_default_"), schema.EntityLimitsKey(ns, "user-1", "gpt-4")},
		},
		{
			"what is disabled", schema.QueryDisabled(table, ns), "GSI2", "#pk = :pk",
			map[string]string{"#pk": "GSI2PK", ":pk": ns + "/DISABLED#"},
			nil,
		},
		{
			"audit events of a subject", schema.QueryAudit(table, ns, &user, "", ""), "", between,
			map[string]string{"#pk": "PK", ":pk": ns + "/AUDIT#user-1", "#sk": "SK", ":first": "#AUDIT#", ":last": "#AUDIT#~"},
			[]schema.Key{schema.AuditKey(ns, "user-1", limiter.AuditID(hour, 1))},
		},
		{
			"audit events of all subjects", schema.QueryAudit(table, ns, nil, limiter.AuditID(hour, 1), limiter.AuditID(hour, 2)), "GSI2", between,
			map[string]string{"#pk": "GSI2PK", ":pk": ns + "/AUDIT#", "#sk": "GSI2SK", ":first": "#AUDIT#" + limiter.AuditID(hour, 1), ":last": "#AUDIT#" + limiter.AuditID(hour, 1)},
			[]schema.Key{schema.AuditKey(ns, "user-1", limiter.AuditID(hour, 1))},
		},
		{
			"audit events before those of a time", schema.QueryAudit(table, ns, nil, "", limiter.AuditID(hour, 0)), "GSI2", between,
			map[string]string{"#pk": "GSI2PK", ":pk": ns + "/AUDIT#", "#sk": "GSI2SK", ":first": "#AUDIT#", ":last": "#AUDIT#" + strings.TrimSuffix(limiter.AuditID(hour, 0), strings.Repeat("0", 16))},
			nil,
		},
		{
			"limits of an entity", schema.QueryEntityLimits(table, ns, "user-1"), "", begins,
			map[string]string{"#pk": "PK", ":pk": ns + "/ENTITY#user-1", "#sk": "SK", ":sk": "#CONFIG#"},
			[]schema.Key{schema.EntityLimitsKey(ns, "user-1", "_default_"), schema.EntityLimitsKey(ns, "user-1", "gpt-4")},
		},
		{
			"changes", schema.QueryChanges(table, ns, 9, 10), "", between,
			map[string]string{"#pk": "PK", ":pk": ns + "/SYSTEM#", "#sk": "SK", ":first": "#CHANGE#00000000000000000009", ":last": "#CHANGE#00000000000000000010"},
			[]schema.Key{schema.ChangeKey(ns, 9), schema.ChangeKey(ns, 10)},
		},
	}
}

// schemaItems returns one item or more of each kind, some in other namespaces.
func schemaItems() map[schema.Key]map[string]string {
	const ns, other = testNS, "zzzzzzzzzzz"
	hour := time.Date(2024, 1, 31, 14, 0, 0, 0, time.UTC)
	all := map[schema.Key]map[string]string{
		schema.EntityKey(ns, "org"):                                                        schema.EntityIndexes(ns, "org", ""),
		schema.EntityKey(ns, "user-1"):                                                     schema.EntityIndexes(ns, "user-1", "org"),
		schema.EntityKey(ns, "user-2"):                                                     schema.EntityIndexes(ns, "user-2", "org"),
		schema.EntityKey(ns, "user-3"):                                                     schema.EntityIndexes(ns, "user-3", "org#"),
		schema.EntityKey(other, "user-1"):                                                  schema.EntityIndexes(other, "user-1", "org"),
		schema.EntityLimitsKey(ns, "user-1", "gpt-4"):                                      schema.EntityLimitsIndexes(ns, "user-1", "gpt-4"),
		schema.EntityLimitsKey(ns, "user-1", "_default_"):                                  schema.EntityLimitsIndexes(ns, "user-1", "_default_"),
		schema.EntityLimitsKey(other, "user-1", "gpt-4"):                                   schema.EntityLimitsIndexes(other, "user-1", "gpt-4"),
		schema.BucketKey(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4"}, 0):    schema.BucketIndexes(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4"}, 0),
		schema.BucketKey(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4o"}, 0):   schema.BucketIndexes(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4o"}, 0),
		schema.BucketKey(other, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4"}, 0): schema.BucketIndexes(other, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4"}, 0),
		schema.GenerationKey(ns):                                                           {},
		schema.VersionKey():                                                                {},
		schema.NamespaceKey("ns"):                                                          {},
		schema.AuditKey(ns, "user-1", limiter.AuditID(hour, 1)):                            schema.AuditIndexes(ns, schema.AuditKey(ns, "user-1", limiter.AuditID(hour, 1))),
		schema.AuditKey(ns, "user-2", limiter.AuditID(hour, 2)):                            schema.AuditIndexes(ns, schema.AuditKey(ns, "user-2", limiter.AuditID(hour, 2))),
	}
	for generation := range uint64(12) {
		all[schema.ChangeKey(ns, generation)] = schema.NamespaceIndex(ns, schema.ChangeKey(ns, generation))
	}
	return all
}

// inPartition returns the items of the namespace in one part of GSI4.
func inPartition(partition int) []schema.Key {
	var keys []schema.Key
	for k, indexes := range schemaItems() {
		if indexes[schema.AttrGSI4PK] == schema.EverythingPK(testNS, partition) {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestAccessPatterns: each query of the schema has the index and the key condition
// that the schema says. It finds the right items in DynamoDB Local, page by page.
func TestAccessPatterns(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	name := dynamotest.TableName(t)
	if _, err := client.CreateTable(t.Context(), TableInput(name)); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	for k, indexes := range schemaItems() {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: schema.NewRecord(k, indexes, limiter.SystemLimitsRef())}); err != nil {
			t.Fatalf("PutItem: %v", err)
		}
	}
	reader := &table{items: awsdb.ItemsOf(client, name), name: name, loop: awsdb.Goroutines{}}
	for _, test := range accessPatterns(name) {
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
			var got []schema.Key
			for item, err := range reader.scan(t.Context(), test.query) {
				if err != nil {
					t.Fatalf("query: %v", err)
				}
				k, err := schema.ItemKey(name, item)
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

func sortKeys(keys []schema.Key) {
	slices.SortFunc(keys, func(a, b schema.Key) int { return slices.Compare([]string{a.PK, a.SK}, []string{b.PK, b.SK}) })
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
