package schema

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A snapshot is found under the consumed names, of any form, and has the attributes of
// limits with any legal name.
func TestUsageIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entity, resource := anyName().Draw(t, "entity"), anyName().Draw(t, "resource")
		w := rapid.SampledFrom(limiter.UsageWindows()).Draw(t, "window")
		at := time.Unix(rapid.Int64Range(0, MaxTTL).Draw(t, "at"), 0).UTC()
		from := &aggregator.Change{
			Snapshot: aggregator.Snapshot{Bucket: aggregator.Bucket{Namespace: someNS, Entity: EscapeName(entity), Resource: EscapeName(resource)}, Window: w, Start: w.Start(at)},
			Used:     map[string]int64{}, Events: 3, Shard: "shardId-1", First: "7", Last: "0030",
		}
		for full, name := range map[*string]string{&from.Names.Entity: entity, &from.Names.Resource: resource} {
			if IsHashed(name) {
				*full = name
			}
		}
		change, ok := NewUsageChange(from)
		want := limiter.UsageSnapshot{Entity: entity, Resource: resource, Window: w, Start: w.Start(at), Events: 3}
		for _, limit := range []string{"ttl", "u", "window"} {
			change.Used[limit] = rapid.Int64().Draw(t, limit)
			want.Limits = append(want.Limits, limiter.LimitUsage{Limit: limit, Tokens: change.Used[limit]})
		}
		item := applied(change.Write())
		got, err := ParseUsage("t", item)
		if diff := cmp.Diff(want, got); err != nil || !ok || diff != "" {
			t.Fatalf("error %v; (-written +read):\n%s", err, diff)
		}
		if diff := cmp.Diff(map[string]Position{"shardId-1": Position(strings.Repeat("0", 38) + "30")}, UsagePositions(item)); diff != "" {
			t.Fatalf("positions (-want +got):\n%s", diff)
		}
	})
}

// applied is the item that a write without a removal makes where there is none.
func applied(w *ItemWrite) record {
	item := w.Key.Attributes()
	for _, c := range w.Changes {
		item[c.Attr] = c.Value
	}
	return item
}

func TestPositionsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[1-9][0-9]{0,39}`).Draw(t, "a"), rapid.StringMatching(`[1-9][0-9]{0,39}`).Draw(t, "b")
		x, okX := NewPosition(aggregator.Sequence(a))
		y, okY := NewPosition(aggregator.Sequence(b))
		m, _ := new(big.Int).SetString(a, 10)
		n, _ := new(big.Int).SetString(b, 10)
		if !okX || !okY || m.Cmp(n) != strings.Compare(string(x), string(y)) {
			t.Fatalf("%s and %s: positions %q and %q", a, b, x, y)
		}
	})
	for _, bad := range []aggregator.Sequence{"", "-1", "12a", aggregator.Sequence(strings.Repeat("1", 41))} {
		if p, ok := NewPosition(bad); ok {
			t.Errorf("%q is position %q", bad, p)
		}
	}
}

// A lease is read as it was written, and a bucket found by any key of its shards.
func TestStreamLeasesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := aggregator.Lease{
			Shard: anyName().Filter(func(s string) bool { return !IsHashed(s) }).Draw(t, "shard"), Owner: rapid.String().Draw(t, "owner"),
			Fence: rapid.Int64Min(1).Draw(t, "fence"), Beat: rapid.Int64Min(1).Draw(t, "beat"), Done: rapid.Bool().Draw(t, "done"),
			Position: aggregator.Sequence(rapid.StringMatching(`[0-9]{0,40}`).Draw(t, "position")),
		}
		item := StreamLeaseItem("2026-11-22T09:00:00.000", &want, time.Unix(1, 0))
		if diff := cmp.Diff(want, ParseStreamLease("t", item)); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
		item[rapid.SampledFrom([]string{attrFence, attrBeat}).Draw(t, "bad")] = TextAttribute("x")
		if got := ParseStreamLease("t", item); got.Shard != want.Shard || got.Problem == nil {
			t.Fatalf("a bad item is read as %+v", got)
		}
	})
}

func TestBucketsOfKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entity, resource := anyName().Draw(t, "entity"), anyName().Draw(t, "resource")
		k := BucketKey(someNS, limiter.BucketKey{Entity: entity, Resource: resource, Variant: rapid.Uint64().Draw(t, "variant")}, rapid.IntRange(0, MaxShards-1).Draw(t, "shard"))
		want := aggregator.Bucket{Namespace: someNS, Entity: EscapeName(entity), Resource: EscapeName(resource)}
		if got, err := BucketOf(k); err != nil || got != want || !IsBucket(k) {
			t.Fatalf("%v: %+v, %v; want %+v", k, got, err, want)
		}
	})
	for _, k := range []Key{EntityKey(someNS, "e"), {PK: "/BUCKET#e#r#0", SK: skState}, {PK: "ns/BUCKET#e#0", SK: skState}, {PK: "ns/BUCKET#e#r#1#2#3", SK: skState}} {
		if got, err := BucketOf(k); err == nil {
			t.Errorf("%v: %+v", k, got)
		}
	}
}
