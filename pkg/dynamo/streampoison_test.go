package dynamo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// opened returns the stream of a new table, and the records of writes of one bucket, of 1 token each.
func opened(t *testing.T, writes int) (*dynamofake.DB, *dynamo.Stream, []types.Record) {
	t.Helper()
	db, from := dynamofake.New(), newStreams(1)
	if err := dynamo.CreateTable(t.Context(), streaming{db}, "buckets"); err != nil {
		t.Fatal(err)
	}
	s, err := dynamo.OpenStream(t.Context(), streaming{db}, from, "buckets", nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []types.Record
	for i := range int64(writes) {
		from.write("e0", 1000*i, 1000*(i+1))
	}
	for _, of := range from.items {
		all = append(all, of...)
	}
	return db, s, all
}

// snapshot reads the usage of the bucket of opened in this month.
func snapshot(t *testing.T, db *dynamofake.DB) (limiter.UsageSnapshot, error) {
	t.Helper()
	of := schema.UsageOf{Entity: "e0", Resource: "r", Window: limiter.UsageMonth, Start: limiter.UsageMonth.Start(time.Now())}
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: of.Key("namespaceid").Attributes()})
	if err != nil || out.Item == nil {
		t.Fatalf("%v, %v", out, err)
	}
	return schema.ParseUsage("buckets", out.Item)
}

func flush(t *testing.T, s *dynamo.Stream, records []types.Record) ([]aggregator.Letter, aggregator.Flushed, error) {
	t.Helper()
	b := aggregator.NewBatch("shard", []limiter.UsageWindow{limiter.UsageMonth}, nil)
	for i := range records {
		r := s.Record(&records[i])
		b.Add(&r)
	}
	done, err := b.Flush(t.Context(), s)
	return b.Letters(), done, err
}

// A permission that a role lacks is no fault of a record: the role can get it, and then the record
// counts. Until then the record waits.
func TestRecordsWaitForPermissions(t *testing.T) {
	db, s, records := opened(t, 3)
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
		return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}}
	})
	letters, done, err := flush(t, s, records)
	if len(letters) > 0 || done.Failed == "" || !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("%d letters, %+v, %v; want no letter", len(letters), done, err)
	}
	of := aggregator.Snapshot{Bucket: aggregator.Bucket{Namespace: "namespaceid", Entity: "e0", Resource: "r"}, Window: limiter.UsageMonth}
	_, _, noteErr := s.Note(t.Context(), &of, []aggregator.Mark{{Limit: "l", Tokens: 1, Percent: 80}}, "x")
	_, nameErr := s.NamespaceName(t.Context(), "namespaceid")
	for what, err := range map[string]error{"a note": noteErr, "a name": nameErr} {
		if !errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	db.SetPlan(nil)
	if letters, done, err := flush(t, s, records); len(letters) > 0 || done.Written != 1 || err != nil {
		t.Errorf("with the permission: %v, %+v, %v", letters, done, err)
	}
	if u, err := snapshot(t, db); err != nil || u.Events != 3 {
		t.Errorf("%+v, %v", u, err)
	}
}

// A record without a place in the stream, or without a time, spoils no other of its snapshot.
func TestPoisonSpoilsNoNeighbor(t *testing.T) {
	for name, poison := range map[string]func(*types.StreamRecord){
		"no sequence number": func(r *types.StreamRecord) { r.SequenceNumber = nil },
		"a sequence of text": func(r *types.StreamRecord) { r.SequenceNumber = aws.String("x7") },
		"no time":            func(r *types.StreamRecord) { r.ApproximateCreationDateTime = nil },
		"a time out of all":  func(r *types.StreamRecord) { r.ApproximateCreationDateTime = aws.Time(time.Unix(1<<40, 0)) },
	} {
		for at := range 3 {
			db, s, records := opened(t, 3)
			poison(records[at].Dynamodb)
			letters, done, err := flush(t, s, records)
			if err != nil || len(letters) != 1 || letters[0].Key == "" || done.Written != 1 {
				t.Errorf("%s at %d: %v, %+v, %v", name, at, letters, done, err)
				continue
			}
			if u, err := snapshot(t, db); err != nil || u.Events != 2 || u.Limits[0].Tokens != 2000 {
				t.Errorf("%s at %d: %+v, %v", name, at, u, err)
			}
		}
	}
}

// A snapshot whose sum has grown out of 64 bits can still be read.
func TestSumsThatAreTooLarge(t *testing.T) {
	db, s, records := opened(t, 4)
	for i := range records {
		attr := schema.LimitAttr("l", schema.LimitConsumed)
		records[i].Dynamodb.OldImage[attr] = &types.AttributeValueMemberN{Value: "0"}
		records[i].Dynamodb.NewImage[attr] = &types.AttributeValueMemberN{Value: "9223372036854775807"}
		if letters, _, err := flush(t, s, records[i:i+1]); err != nil || len(letters) > 0 {
			t.Fatalf("%v, %v", letters, err)
		}
	}
	if u, err := snapshot(t, db); err != nil || u.Limits[0].Tokens != 1<<63-1 {
		t.Errorf("%+v, %v", u, err)
	}
}

// A record of a namespace that cannot be read takes no other its name.
func TestNamesBesideACorruptOne(t *testing.T) {
	db, s, _ := opened(t, 0)
	for name, id := range map[string]string{"corrupt": "x", "default": "namespaceid"} {
		item := schema.NamespaceKey(name).Attributes()
		item[schema.AttrNamespaceID] = schema.TextAttribute(id)
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("buckets"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	if name, err := s.NamespaceName(t.Context(), "namespaceid"); name != "default" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

// The error of a shard that the stream has dropped differs from that of a missing stream, and from
// those of failed calls.
func TestOpenOfADroppedShard(t *testing.T) {
	db, from := dynamofake.New(), newStreams(3)
	if err := dynamo.CreateTable(t.Context(), streaming{db}, "buckets"); err != nil {
		t.Fatal(err)
	}
	s, err := dynamo.OpenStream(t.Context(), streaming{db}, from, "buckets", nil)
	if err != nil {
		t.Fatal(err)
	}
	shard := *from.shards[0].ShardId
	from.drop(shard)
	outcomes := map[string]int{}
	for range 50 { // calls are throttled at random
		_, err := s.Open(t.Context(), shard, "")
		switch {
		case errors.Is(err, aggregator.ErrDropped) && !errors.Is(err, aggregator.ErrGone):
			outcomes["dropped"]++
		case errors.Is(err, limiter.ErrUnavailable):
			outcomes["unavailable"]++
		default:
			t.Errorf("error %v", err)
		}
	}
	if outcomes["dropped"] == 0 || outcomes["unavailable"] == 0 {
		t.Errorf("outcomes %v, want some of both", outcomes)
	}
	from.mu.Lock()
	from.ended = true
	from.mu.Unlock()
	if _, err := s.Open(t.Context(), shard, ""); !errors.Is(err, aggregator.ErrGone) {
		t.Errorf("of a stream that is gone: %v", err)
	}
}

// A namespace whose record comes later, or is mended, has its name a minute after it was looked up without one. Its
// lookups are bounded meanwhile.
func TestANameThatComesLater(t *testing.T) {
	db, from := dynamofake.New(), newStreams(1)
	if err := dynamo.CreateTable(t.Context(), streaming{db}, "buckets"); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	s, err := dynamo.OpenStream(t.Context(), streaming{db}, from, "buckets", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	queries := 0
	db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
		if c.Op == "Query" {
			queries++
		}
		return dynamofake.Fault{}
	})
	named := func(when, want string) {
		t.Helper()
		for range 5 {
			if name, err := s.NamespaceName(t.Context(), "namespaceid"); name != want || err != nil {
				t.Errorf("%s: %q, %v; want %q", when, name, err, want)
			}
		}
	}
	named("before", "")
	item := schema.NamespaceKey("default").Attributes()
	item[schema.AttrNamespaceID] = schema.TextAttribute("namespaceid")
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("buckets"), Item: item}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(59 * time.Second)
	named("soon", "")
	now = now.Add(2 * time.Second)
	named("later", "default")
	if queries != 2 {
		t.Errorf("%d queries, want 2", queries)
	}
}
