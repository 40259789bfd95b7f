package dynamo

import (
	"strings"
	"testing"
	"time"

	table "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const ns = "AbCdEfGhIj0"

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

type image = map[string]types.AttributeValue

// change is a record of an item.
func change(event types.OperationType, k schema.Key, old, now image) *types.Record {
	at, sequence := time.Unix(1_700_000_000, 0), "000000000000000000007"
	return &types.Record{EventName: event, Dynamodb: &types.StreamRecord{
		ApproximateCreationDateTime: &at, SequenceNumber: &sequence,
		Keys: image{"PK": str(k.PK), "SK": str(k.SK)}, OldImage: old, NewImage: now,
	}}
}

func TestRecordsOfBuckets(t *testing.T) {
	k := schema.BucketKey(ns, limiter.BucketKey{Entity: "key/1", Resource: "gpt-4", Variant: 7}, 3)
	old := image{"b_rpm_tc": num("1000"), "b_rpm_cp": num("9"), "lt": num("5"), "entity_id": str("a long name")}
	now := image{"b_rpm_tc": num("3000"), "b_a_b_tc": num("-500"), "lt": num("6"), "at": num("7"), "wcu": num("12"), "b_x_un": num("1"), "entity_id": str("a long name")}
	want := aggregator.Record{
		Sequence: "000000000000000000007", Key: k.String(), Time: time.Unix(1_700_000_000, 0).UTC(),
		Bucket: aggregator.Bucket{Namespace: ns, Entity: "key%2F1", Resource: "gpt-4"}, Item: k.PK, Names: aggregator.Names{Entity: "a long name"},
		Old: &aggregator.Image{Consumed: map[string]int64{"rpm": 1000}, Taken: 5},
		New: &aggregator.Image{Consumed: map[string]int64{"rpm": 3000, "a_b": -500}, Taken: 6, Exact: 7},
	}
	s := &Stream{table: "t"}
	for name, tt := range map[string]struct {
		event    types.OperationType
		old, now image
	}{"modified": {types.OperationTypeModify, old, now}, "inserted": {types.OperationTypeInsert, nil, now}, "removed": {types.OperationTypeRemove, old, nil}} {
		want := want
		if tt.old == nil {
			want.Old = nil
		}
		if tt.now == nil {
			want.New = nil
		}
		if diff := cmp.Diff(want, s.Record(change(tt.event, k, tt.old, tt.now)), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A record that cannot be read has a problem and its key; the problem contains values of
// buckets' items alone.
func TestRecordsThatCannotBeRead(t *testing.T) {
	k := schema.BucketKey(ns, limiter.BucketKey{Entity: "e", Resource: "r"}, 0)
	s := &Stream{table: "t"}
	whole := image{"b_rpm_tc": num("1")}
	noKey := change(types.OperationTypeInsert, k, nil, whole)
	delete(noKey.Dynamodb.Keys, "SK")
	for name, tt := range map[string]struct {
		from *types.Record
		says string
	}{
		"no content":            {&types.Record{}, "no content"},
		"no sort key":           {noKey, "SK"},
		"a bucket of no entity": {change(types.OperationTypeInsert, schema.Key{PK: ns + "/BUCKET##r#0", SK: "#STATE"}, nil, whole), "no key of a bucket"},
		"no new image":          {change(types.OperationTypeModify, k, whole, nil), "lacks an image"},
		"no old image":          {change(types.OperationTypeModify, k, nil, whole), "lacks an image"},
		"a counter of text":     {change(types.OperationTypeInsert, k, nil, image{"b_rpm_tc": str("x")}), "b_rpm_tc"},
		"too large a counter":   {change(types.OperationTypeInsert, k, nil, image{"b_rpm_tc": num("9223372036854775808")}), "b_rpm_tc"},
		"a fraction":            {change(types.OperationTypeInsert, k, nil, image{"b_rpm_tc": num("0.5")}), "b_rpm_tc"},
		"a time of text":        {change(types.OperationTypeInsert, k, nil, image{"lt": str("now")}), "lt"},
	} {
		r := s.Record(tt.from)
		if r.Problem == nil || !strings.Contains(r.Problem.Error(), tt.says) {
			t.Errorf("%s: %+v, want %q", name, r, tt.says)
		}
		if name != "no content" && name != "no sort key" && !strings.Contains(r.Key, ns+"/BUCKET#") {
			t.Errorf("%s: the key is %q", name, r.Key)
		}
	}
}

// Of other items nothing is passed on: the key of reservations is in no record that an aggregator
// sees.
func TestSecretsArePassedOnToNoAggregator(t *testing.T) {
	s := &Stream{table: "t"}
	secret := []byte("0123456789abcdef0123456789abcdef")
	k := schema.SecretKey("reservation")
	item := image{}
	for name, v := range schema.SecretItem(k, secret, time.Unix(0, 0)) {
		switch v := v.(type) {
		case *table.AttributeValueMemberS:
			item[name] = str(v.Value)
		case *table.AttributeValueMemberN:
			item[name] = num(v.Value)
		case *table.AttributeValueMemberB:
			item[name] = &types.AttributeValueMemberB{Value: v.Value}
		}
	}
	if len(item) < 4 {
		t.Fatalf("the record has %d attributes", len(item))
	}
	for _, from := range []*types.Record{change(types.OperationTypeInsert, k, nil, item), change(types.OperationTypeModify, k, item, item), change(types.OperationTypeRemove, k, item, nil)} {
		want := aggregator.Record{Sequence: "000000000000000000007", Key: k.String(), Time: time.Unix(1_700_000_000, 0).UTC(), Other: true}
		if diff := cmp.Diff(want, s.Record(from)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from.EventName, diff)
		}
	}
}
