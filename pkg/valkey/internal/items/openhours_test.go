package items_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A sweep that adds an hour to its day, and deletes it, between the two reads of the day hides no use.
func TestReadBesideASweep(t *testing.T) {
	var db *items.DB
	var calls atomic.Int32 // of the clock until the sweep
	db = openDB(t, valkeytest.Start(t), "", func() time.Time {
		if calls.Load() > 0 && calls.Add(-1) == 0 {
			if _, err := db.Sweep(context.Background(), time.Now().Add(-time.Hour), 10); err != nil {
				t.Error(err)
			}
		}
		return time.Now()
	})
	s, at := db.Session(), time.Now().Add(-72*time.Hour)
	k := schema.BucketKey("AbCdEfGhIj0", limiter.BucketKey{Entity: "e", Resource: "r"}, 0)
	snapshots, ok := schema.SnapshotsOf(k, at.UTC())
	if !ok {
		t.Fatalf("%v is no key of a bucket", k)
	}
	it := k.Attributes()
	it[schema.LimitAttr("l", schema.LimitConsumed)], it[schema.AttrLastTake] = numberOf("5000"), numberOf(strconv.FormatInt(at.UnixMilli(), 10))
	if _, err := s.Write(t.Context(), schema.NewPut(it)); err != nil {
		t.Fatal(err)
	}
	for _, until := range []int32{0, 2, 0} {
		calls.Store(until)
		out, err := s.GetItem(t.Context(), &dynamodb.GetItemInput{Key: snapshots.Key(limiter.UsageDay).Attributes()})
		if err != nil || calls.Load() != 0 {
			t.Fatalf("%v, %d calls of the clock before the sweep", err, calls.Load())
		}
		if n, _ := out.Item[schema.UsedAttr("l")].(*types.AttributeValueMemberN); n == nil || n.Value != "5000" {
			t.Errorf("the sweep at call %d of the clock: the day has %v, want 5000", until, out.Item)
		}
	}
}

// A plain write that the server refuses a command is not applied, or its outcome is uncertain.
func TestPlainWriteWithoutAPermission(t *testing.T) {
	for _, command := range []string{"time", "hset", "hmget", "hgetall"} {
		server := valkeytest.Start(t)
		server.Must("ACL", "SETUSER", "u", "on", ">pw", "~*", "+@all")
		s := openDB(t, server, "u", time.Now).Session()
		it := itemKey("s")
		it[schema.AttrEpoch], it[schema.AttrSerial] = numberOf("0"), numberOf("7")
		if _, err := s.Write(t.Context(), schema.NewPut(it)); err != nil {
			t.Fatal(err)
		}
		server.Must("ACL", "SETUSER", "u", "-"+command)
		w := schema.NewUpdate(schema.Key{PK: "p", SK: "s"})
		w.Require(schema.AttrEpoch, "=", numberOf("0"))
		w.Set("id", &types.AttributeValueMemberB{Value: []byte("x")})
		w.Add(schema.AttrSerial, 1)
		_, err := s.Write(t.Context(), w)
		applied := server.Must("HGET", "{t}:i:p\x00s", schema.AttrSerial) == "8"
		if uncertain := errors.Is(awsdb.Translate(err), limiter.ErrUncertain); err == nil || applied && !uncertain {
			t.Errorf("without %s: %v, applied %t", command, err, applied)
		}
	}
}
