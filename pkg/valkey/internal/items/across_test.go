package items

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

const (
	someNS   = "AbCdEfGhIj0"
	theTable = "t"
)

// spreadOn returns the calls on a new table in places, all of them on one server.
func spreadOn(t *testing.T, server *valkeytest.Server) *Session {
	t.Helper()
	db, err := Open(t.Context(), Config{
		Name: theTable, Now: time.Now, Connect: func(_ context.Context, slots []int, _ *Servers, _ string) (*Servers, error) {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Address}, DisableCache: true, DisableRetry: true, ForceSingleClient: true})
			return &Servers{Clients: slices.Repeat([]rueidis.Client{client}, len(slots)), Addresses: slices.Repeat([]string{server.Address}, len(slots))}, err
		},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db.Session()
}

// put makes an item with a number.
func put(t *testing.T, s *Session, k schema.Key, n string) {
	t.Helper()
	item := k.Attributes()
	item["a"] = &types.AttributeValueMemberN{Value: n}
	if _, err := s.Write(t.Context(), schema.NewPut(item)); err != nil {
		t.Fatal(err)
	}
}

// numberAt returns the number of an item, "" where it is gone.
func numberAt(t *testing.T, s *Session, k schema.Key) string {
	t.Helper()
	out, err := s.GetItem(t.Context(), &dynamodb.GetItemInput{Key: k.Attributes()})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := out.Item["a"].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// setIf sets the number of an item that has another one.
func setIf(k schema.Key, from, to string) *schema.ItemWrite {
	w := schema.NewUpdate(k)
	w.Require("a", "=", &types.AttributeValueMemberN{Value: from})
	w.Set("a", &types.AttributeValueMemberN{Value: to})
	return w
}

// buckets returns the key of the counter of a namespace, and those of buckets in two other places.
func buckets(t *testing.T) (counter, one, another schema.Key) {
	t.Helper()
	counter = schema.GenerationKey(someNS)
	homes := []int{}
	keys := []schema.Key{}
	first, _ := schema.Home(counter)
	for i := 0; len(keys) < 2; i++ {
		k := schema.BucketKey(someNS, limiter.BucketKey{Entity: string(rune('a' + i)), Resource: "r"}, 0)
		if home, _ := schema.Home(k); home != first && !slices.Contains(homes, home) {
			homes, keys = append(homes, home), append(keys, k)
		}
	}
	return counter, keys[0], keys[1]
}

// A transaction over two places is applied in the second one if it is in the first, and its event and its record stand
// beside the bucket.
func TestAcrossPlaces(t *testing.T) {
	s := spreadOn(t, valkeytest.Start(t))
	counter, bucket, another := buckets(t)
	once, event := schema.OnceKey(someNS, "o"), schema.AuditKey(someNS, "e", "1")
	put(t, s, counter, "1")
	put(t, s, bucket, "1")
	put(t, s, another, "1")
	change := func(from, of string, more ...*schema.ItemWrite) error {
		writes := append([]*schema.ItemWrite{
			setIf(counter, from, from+"0"), schema.NewPut(event.Attributes()), setIf(bucket, of, "2"), schema.PutNew(once.Attributes()),
		}, more...)
		return s.Transact(t.Context(), from+of, writes)
	}
	if code, _ := awsdb.ReasonAt(change("9", "1"), 0); code != awsdb.ConditionFailed || numberAt(t, s, bucket) != "1" {
		t.Errorf("refused in the first place for %q; the bucket has %s", code, numberAt(t, s, bucket))
	}
	if code, _ := awsdb.ReasonAt(change("1", "9"), 2); code != awsdb.ConditionFailed || numberAt(t, s, bucket) != "1" || numberAt(t, s, counter) != "10" {
		t.Errorf("refused in the second place for %q; the bucket has %s, the counter %s", code, numberAt(t, s, bucket), numberAt(t, s, counter))
	}
	for range 2 { // the second time it is a message of unknown outcome that is sent again
		if err := change("10", "1"); err != nil || numberAt(t, s, bucket) != "2" || numberAt(t, s, counter) != "100" {
			t.Errorf("%v; the bucket has %s, the counter %s", err, numberAt(t, s, bucket), numberAt(t, s, counter))
		}
	}
	place, _ := schema.Home(bucket)
	for _, k := range []schema.Key{once, event} {
		if all, _, err := s.fetch(t.Context(), place, []string{s.db.prefixes[place].item(k.PK, k.SK)}); err != nil || all[0] == nil {
			t.Errorf("%v is not beside the bucket: %v", k, err)
		}
	}
	if code, _ := awsdb.ReasonAt(change("100", "2"), 3); code != awsdb.ConditionFailed {
		t.Errorf("a second adjustment under one record: %q", code)
	}
	if err := change("100", "2", setIf(another, "1", "2")); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("changes of three places: %v", err)
	}
}

// A transaction does not read what it left: it is applied by then, and an item that cannot be read would keep its later
// parts from being applied.
func TestAcrossAnItemThatCannotBeRead(t *testing.T) {
	s := spreadOn(t, valkeytest.Start(t))
	counter, bucket, _ := buckets(t)
	put(t, s, counter, "1")
	put(t, s, bucket, "1")
	place, _ := schema.Home(counter)
	client := s.db.client(place)
	if err := client.Do(t.Context(), client.B().Hset().Key(s.db.prefixes[place].item(counter.PK, counter.SK)).FieldValue().FieldValue("odd", "Q").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := s.Transact(t.Context(), "token", []*schema.ItemWrite{setIf(counter, "1", "2"), setIf(bucket, "1", "2")}); err != nil {
		t.Error(err)
	}
	if got := numberAt(t, s, bucket); got != "2" {
		t.Errorf("the bucket has %s, want 2", got)
	}
}

// One record of an adjustment stands beside one bucket, also where that is in the place of the namespace. One that ended
// between the places is made when it is repeated.
func TestOneRecordForOneBucket(t *testing.T) {
	s := spreadOn(t, valkeytest.Start(t))
	counter, bucket, another := buckets(t)
	first, _ := schema.Home(counter)
	var near schema.Key
	for i := 0; ; i++ {
		near = schema.BucketKey(someNS, limiter.BucketKey{Entity: "near" + string(rune('a'+i)), Resource: "r"}, 0)
		if home, _ := schema.Home(near); home == first {
			break
		}
	}
	put(t, s, counter, "1")
	adjust := func(k schema.Key, once, from, to, token string) error {
		return s.Transact(t.Context(), token, []*schema.ItemWrite{
			setIf(counter, "1", "1"), setIf(k, from, to), schema.PutOnce(schema.OnceKey(someNS, once), time.Now(), "booked"),
		})
	}
	for _, test := range []struct {
		once string
		a, b schema.Key
	}{{"far", bucket, another}, {"near", near, bucket}, {"last", bucket, near}} {
		for _, k := range []schema.Key{bucket, another, near} {
			put(t, s, k, "1")
		}
		if code, _ := awsdb.ReasonAt(adjust(test.a, test.once, "9", "2", test.once+"1"), 1); code != awsdb.ConditionFailed { // it claims the record, or nothing
			t.Errorf("%s: the first try: %q", test.once, code)
		}
		if err := adjust(test.a, test.once, "1", "2", test.once+"2"); err != nil {
			t.Errorf("%s: the second try: %v", test.once, err)
		}
		if code, _ := awsdb.ReasonAt(adjust(test.b, test.once, "1", "2", test.once+"3"), 2); code != awsdb.ConditionFailed || numberAt(t, s, test.b) != "1" {
			t.Errorf("%s: of another bucket: %q; it has %s", test.once, code, numberAt(t, s, test.b))
		}
	}
}

// Deletions in other places rest on the condition of the transaction each time that it is sent. What may be anywhere is
// deleted everywhere.
func TestDeletionsAcrossPlaces(t *testing.T) {
	s := spreadOn(t, valkeytest.Start(t))
	counter, bucket, another := buckets(t)
	put(t, s, counter, "1")
	remove := func(from string, keys ...schema.Key) error {
		writes := append(make([]*schema.ItemWrite, 0, 1+len(keys)), setIf(counter, from, from))
		for _, k := range keys {
			writes = append(writes, schema.NewDelete(k))
		}
		return s.Transact(t.Context(), "token", writes)
	}
	event := schema.AuditKey(someNS, "e", "1")
	if err := s.Transact(t.Context(), "", []*schema.ItemWrite{schema.NewPut(bucket.Attributes()), schema.NewPut(event.Attributes())}); err != nil {
		t.Fatal(err)
	}
	put(t, s, another, "1")
	if err := remove("1", bucket, another, event); err != nil {
		t.Fatal(err)
	}
	left, _, err := s.items(t.Context(), 3, s.db.spots([]schema.Key{bucket, another, event}))
	if err != nil || left[0] != nil || left[1] != nil || left[2] != nil {
		t.Errorf("left are %v, %v", left, err)
	}
	put(t, s, counter, "2")
	put(t, s, bucket, "1")
	if code, _ := awsdb.ReasonAt(remove("1", bucket, another), 0); code != awsdb.ConditionFailed || numberAt(t, s, bucket) != "1" {
		t.Errorf("sent again it is refused for %q; the bucket has %q", code, numberAt(t, s, bucket))
	}
}

// A later part of a transaction that comes too late is not applied.
func TestALatePart(t *testing.T) {
	s := spreadOn(t, valkeytest.Start(t))
	_, bucket, _ := buckets(t)
	place, _ := schema.Home(bucket)
	latest, err := s.deadline(t.Context(), place)
	if left := time.Until(time.UnixMilli(latest)); err != nil || left > crossing+time.Second || left < crossing/2 {
		t.Errorf("a part may come for %v, %v", left, err)
	}
	w, err := writeOf(schema.NewPut(bucket.Attributes()))
	if err != nil {
		t.Fatal(err)
	}
	for _, early := range []int64{1, time.Now().Add(-time.Second).UnixMilli()} {
		_, err = s.apply(t.Context(), &batch{place: place, writes: []write{w}, latest: early}, gains{})
		if kind := awsdb.KindOf(err); !errors.Is(kind, limiter.ErrUnavailable) {
			t.Errorf("a part that is late ends in %v", err)
		}
	}
	if out, err := s.GetItem(t.Context(), &dynamodb.GetItemInput{Key: bucket.Attributes()}); err != nil || out.Item != nil {
		t.Errorf("a part that is late is applied: %v, %v", out, err)
	}
}

// A page of a query over several places has the first entries of all of them, and the next page goes on behind it.
func TestQueryOverPlaces(t *testing.T) {
	s := spreadOn(t, valkeytest.Start(t))
	const all = 60
	want := make([]string, 0, all)
	for i := range all {
		of := limiter.BucketKey{Entity: "e", Resource: string(rune('A' + i))}
		if _, err := s.Write(t.Context(), schema.NewPut(schema.NewBucketItem(someNS, of, 0))); err != nil {
			t.Fatal(err)
		}
		want = append(want, schema.BucketKey(someNS, of, 0).PK)
	}
	slices.Sort(want)
	for _, backward := range []bool{false, true} {
		q := schema.QueryEntityBuckets(theTable, someNS, "e", "")
		q.Limit, q.ScanIndexForward = aws.Int32(7), aws.Bool(!backward)
		var got []string
		for more := true; more; more = len(q.ExclusiveStartKey) > 0 {
			out, err := s.Query(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range out.Items {
				got = append(got, schema.KeyOf(item).PK)
			}
			q.ExclusiveStartKey = out.LastEvaluatedKey
		}
		if backward {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("backward %t: found %d items in the order %v", backward, len(got), got)
		}
	}
}

// The places of a table are in slots of all parts of a cluster.
func TestSlots(t *testing.T) {
	for _, table := range []string{"ratelimit", "a", "limits-of-staging.1"} {
		for place, slot := range Slots(table) {
			if slot/(slots/schema.IndexPartitions) != place {
				t.Errorf("the place %d of %s is in the slot %d", place, table, slot)
			}
		}
	}
	if got := slotOf("123456789"); got != 12739 { // as the specification of clusters has it
		t.Errorf("the tag 123456789 is in the slot %d, want 12739", got)
	}
}
