package plan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/scripttest"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

const tableName = "buckets"

// fataler is a test, or one run of a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a table that evaluates the conditions of writes, with one bucket.
type world struct {
	fataler
	db     awsdb.Client // DynamoDB in memory, or DynamoDB Local
	bucket limiter.BucketKey
	ids    uint64
}

func newWorld(t fataler) *world {
	t.Helper()
	return newWorldOf(t, dynamofake.New())
}

func newWorldOf(t fataler, db awsdb.Client) *world {
	t.Helper()
	w := &world{fataler: t, db: db, bucket: limiter.BucketKey{Entity: "user-123456", Resource: "api.requests"}}
	s := types.ScalarAttributeTypeS
	_, err := w.db.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName:            aws.String(tableName),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: s}, {AttributeName: aws.String("SK"), AttributeType: s}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("SK"), KeyType: types.KeyTypeRange}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	return w
}

func (w *world) key(shard int) schema.Key {
	return schema.BucketKey("ns1", w.bucket, shard)
}

// id returns the next id of a replica.
func (w *world) id(replica uint32) plan.ID {
	w.ids++
	return plan.ID{Slot: int(replica % schema.SlotCount), Write: schema.NewWriteID(replica, w.ids)}
}

// send sends a write and returns whether it was applied and the item as the reply has it.
func (w *world) send(q *plan.Write, shard int) (applied bool, image *schema.Bucket) {
	w.Helper()
	to := w.write(q, shard)
	item, err := w.items().Write(context.Background(), to)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return false, w.parse(failed.Item, shard)
	}
	if err != nil {
		w.Fatalf("write: %v", err)
	}
	if len(item) == 0 {
		item = to.Item
	}
	return true, w.parse(item, shard)
}

// write returns the write of an item.
func (w *world) write(q *plan.Write, shard int) *schema.ItemWrite {
	if q.Creates() {
		return q.Put(schema.NewBucketItem("ns1", w.bucket, shard))
	}
	return q.Update(w.key(shard))
}

// items returns the items of the table.
func (w *world) items() awsdb.Items {
	return scripttest.Items(awsdb.ItemsOf(w.db, tableName), tableName)
}

// recorder is a DynamoDB that keeps the last update, and does nothing.
type recorder struct {
	awsdb.Client

	in *dynamodb.UpdateItemInput
}

func (r *recorder) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.in = in
	return nil, errKept
}

// errKept says that a write was not made.
var errKept = errors.New("the write is kept")

// requestOf returns the request that DynamoDB gets of an update.
func requestOf(t fataler, w *schema.ItemWrite) *dynamodb.UpdateItemInput {
	t.Helper()
	var sent recorder
	if _, err := awsdb.ItemsOf(&sent, tableName).Write(context.Background(), w); !errors.Is(err, errKept) {
		t.Fatalf("the write is no update: %v", err)
	}
	return sent.in
}

// parse returns the state of an item; nil for none.
func (w *world) parse(item map[string]types.AttributeValue, shard int) *schema.Bucket {
	w.Helper()
	if len(item) == 0 {
		return nil
	}
	b, err := schema.ParseBucket(tableName, w.key(shard), item, nil)
	if err != nil {
		w.Fatalf("%v", err)
	}
	return b
}

// sameState requires a write to have left the state that it planned.
func (w *world) sameState(want, got *schema.Bucket) {
	w.Helper()
	had, has := want.Attributes(), got.Attributes()
	for name, v := range has {
		if had[name] == nil {
			w.Fatalf("the write leaves %s = %s, want none", name, textOf(v))
		}
	}
	for name, v := range had {
		if got, want := textOf(has[name]), textOf(v); got != want {
			w.Fatalf("the write leaves %s = %s, want %s", name, got, want)
		}
	}
}

// limitsOf returns a set of limits.
func limitsOf(t fataler, all ...limiter.Limit) *limiter.Limits {
	t.Helper()
	l, err := limiter.NewLimits(all...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return l
}

// op returns a request of spends under limits.
func op(t fataler, limits *limiter.Limits, generation uint64, spends ...limiter.Spend) (*limiter.Op, *plan.Request) {
	t.Helper()
	o := &limiter.Op{Limits: limits, Generation: generation, Spends: spends}
	r, err := plan.NewRequest(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return o, r
}

var _ fataler = (*testing.T)(nil)

// read returns the state of the item; nil for none.
func (w *world) read(shard int) *schema.Bucket {
	w.Helper()
	out, err := w.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(tableName), Key: w.key(shard).Attributes()})
	if err != nil {
		w.Fatalf("%v", err)
	}
	return w.parse(out.Item, shard)
}
