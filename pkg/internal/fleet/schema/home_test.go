package schema

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A bucket's shards and variants, its usage and their index entries are at home in one part.
func TestHomeOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 300, -1)
		of := limiter.BucketKey{Entity: name.Draw(t, "entity"), Resource: name.Draw(t, "resource")}
		home, known := Home(BucketKey(someNS, of, 0))
		if !known {
			t.Fatal("a bucket has no home")
		}
		of.Variant = rapid.Uint64().Draw(t, "variant")
		k := BucketKey(someNS, of, rapid.IntRange(0, MaxShards-1).Draw(t, "shard"))
		snapshots, ok := SnapshotsOf(k, time.Now())
		if !ok {
			t.Fatalf("%v has no snapshots", k)
		}
		keys := append(make([]Key, 0, 4), k)
		for _, w := range limiter.UsageWindows() {
			keys = append(keys, snapshots.Key(w))
		}
		for _, k := range keys {
			if got, known := Home(k); got != home || !known {
				t.Errorf("%v is at home in %d, %t; the bucket in %d", k, got, known, home)
			}
		}
		for i, q := range append(QueriesUsage("t", someNS, limiter.UsageFilter{Window: limiter.UsageHour}), QueryBuckets("t", someNS, home)) {
			if got, known := HomeOfQuery(q); got != i%IndexPartitions && got != home || !known {
				t.Errorf("the query of the partition %d finds what is in %d, %t", i, got, known)
			}
		}
		indexes := BucketIndexes(someNS, of, 0)
		if want := EverythingPK(someNS, home); indexes[AttrGSI4PK] != want {
			t.Errorf("the index entry is in %s, want %s", indexes[AttrGSI4PK], want)
		}
		if want := resourcePK(someNS, of.Resource, home); indexes[AttrGSI2PK] != want {
			t.Errorf("the index entry is in %s, want %s", indexes[AttrGSI2PK], want)
		}
	})
}

// All that a change of records writes is at home in one part, and queries of records find it there.
func TestHomeOfRecords(t *testing.T) {
	records, _ := Home(GenerationKey(someNS))
	for _, k := range []Key{
		EntityKey(someNS, "e"), EntityLimitsKey(someNS, "e", "r"), resourceLimitsKey(someNS, "r"), systemLimitsKey(someNS),
		ConfigurationKey(someNS), ChangeKey(someNS, 1),
	} {
		if home, known := Home(k); home != records || !known {
			t.Errorf("%v is at home in %d, %t, want %d", k, home, known, records)
		}
	}
	for name, q := range map[string]*dynamodb.QueryInput{
		"records": QueryRecords("t", someNS, Entities, 3), "limits": QueryEntityLimits("t", someNS, "e"), "changes": QueryChanges("t", someNS, 1, 2),
	} {
		if home, known := HomeOfQuery(q); home != records || !known {
			t.Errorf("%s are looked for in %d, %t, want %d", name, home, known, records)
		}
	}
	for _, k := range []Key{AuditKey(someNS, "e", "1"), OnceKey(someNS, "o")} {
		if _, known := Home(k); known {
			t.Errorf("%v has one home: it stands beside a bucket or beside the records", k)
		}
	}
	entity := limiter.EntityRef("e")
	for name, q := range map[string]*dynamodb.QueryInput{
		"events": QueryAudit("t", someNS, &entity, "", ""), "all events": QueryAudit("t", someNS, nil, "", ""), "everything": QueryNamespace("t", someNS, 1),
		"buckets of an entity": QueryEntityBuckets("t", someNS, "e", ""), "usage of an entity": QueriesUsage("t", someNS, limiter.UsageFilter{Entity: "e"})[0],
	} {
		if _, known := HomeOfQuery(q); known {
			t.Errorf("%s are looked for in one part", name)
		}
	}
}

// Marks of settlements are spread over all parts.
func TestHomesOfMarks(t *testing.T) {
	seen := make(map[int]bool)
	for i := range 200 {
		home, _ := Home(MarkKey(someNS, strconv.Itoa(i)))
		seen[home] = true
	}
	if len(seen) != IndexPartitions {
		t.Errorf("marks are in %d parts, want %d", len(seen), IndexPartitions)
	}
}
