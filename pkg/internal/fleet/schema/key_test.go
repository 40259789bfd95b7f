package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestNamesInKeys: the form of names in keys.
func TestNamesInKeys(t *testing.T) {
	long := strings.Repeat("a", 201)
	hashOf := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	for _, test := range []struct{ name, want string }{
		{"", "~"},
		{"~", "%7E"},
		{"user-1", "user-1"},
		{"café №1", "café №1"},
		{"a#b/c%d~e$f", "a%23b%2Fc%25d%7Ee%24f"},
		{"a\x00\x1f\x7f", "a%00%1F%7F"},
		{"k\xff", "k%FF"},
		{"\xed\xa0\x80", "%ED%A0%80"},
		{"k\ufffd", "k\ufffd"},
		{"%23", "%2523"},
		{long[:200], long[:200]},
		{long, long[:135] + "~" + hashOf(long)},
		{strings.Repeat("#", 67), strings.Repeat("%23", 45) + "~" + hashOf(strings.Repeat("#", 67))},
		{strings.Repeat("é", 101), strings.Repeat("é", 67) + "~" + hashOf(strings.Repeat("é", 101))},
	} {
		if got := EscapeName(test.name); got != test.want {
			t.Errorf("escapeName(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

// anyName draws names of any bytes, with many of the characters that mean something.
func anyName() *rapid.Generator[string] {
	special := rapid.StringOfN(rapid.RuneFrom([]rune("#/%~$_-a0\x00\x7f\u00e9\ufffd")), 0, 80, -1)
	raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")) })
	return rapid.OneOf(special, raw, rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return EscapeName(raw.Draw(t, "stored form of"))
	}))
}

func TestNamesAreOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyName().Draw(t, "a"), anyName().Draw(t, "b")
		partA, partB := EscapeName(a), EscapeName(b)
		if (a == b) != (partA == partB) {
			t.Fatalf("names %q and %q stand as %q and %q", a, b, partA, partB)
		}
		if partA == "" || len(partA) > maxNamePart || !utf8.ValidString(partA) || strings.ContainsAny(partA, "#/$") {
			t.Fatalf("%q stands as %q (%d bytes)", a, partA, len(partA))
		}
		if name, err := unescapeAll(partA); !IsHashed(a) && (err != nil || name != a) {
			t.Fatalf("%q stands as %q, which reads as %q, %v", a, partA, name, err)
		}
	})
}

// subject is a record that has a key: a kind, and those of the fields that the kind has.
type subject struct {
	kind                     string
	ns, entity, resource, id string
	variant, generation      uint64
	shard                    int
}

// kinds are the ways to make a key of a subject.
func kinds() map[string]func(s subject) Key {
	return map[string]func(s subject) Key{
		"entity": func(s subject) Key { return EntityKey(s.ns, s.entity) },
		"bucket": func(s subject) Key {
			return BucketKey(s.ns, limiter.BucketKey{Entity: s.entity, Resource: s.resource, Variant: s.variant}, s.shard)
		},
		"entity limits":   func(s subject) Key { return EntityLimitsKey(s.ns, s.entity, s.resource) },
		"resource limits": func(s subject) Key { return resourceLimitsKey(s.ns, s.resource) },
		"system limits":   func(s subject) Key { return systemLimitsKey(s.ns) },
		"audit": func(s subject) Key {
			return AuditKey(s.ns, AuditSubject(limiter.EntityRef(s.entity)), s.id)
		},
		"audit of a resource": func(s subject) Key {
			return AuditKey(s.ns, AuditSubject(limiter.ResourceLimitsRef(s.resource)), s.id)
		},
		"audit of the system": func(s subject) Key {
			return AuditKey(s.ns, AuditSubject(limiter.SystemLimitsRef()), s.id)
		},
		"generation":    func(s subject) Key { return GenerationKey(s.ns) },
		"configuration": func(s subject) Key { return ConfigurationKey(s.ns) },
		"change":        func(s subject) Key { return ChangeKey(s.ns, s.generation) },
		"mark":          func(s subject) Key { return MarkKey(s.ns, s.entity) },
		"namespace":     func(s subject) Key { return NamespaceKey(s.entity) },
		"namespace id":  func(s subject) Key { return NamespaceIDKey(s.ns) },
		"secret":        func(s subject) Key { return SecretKey(s.id) },
		"version":       func(subject) Key { return VersionKey() },
	}
}

// anySubject draws a subject. Each of its fields is that of another one as often as not.
func anySubject(t *rapid.T, label string, like subject) subject {
	s := like
	draw := func(what string, fresh func()) {
		if !rapid.Bool().Draw(t, label+" has the same "+what) {
			fresh()
		}
	}
	draw("kind", func() { s.kind = rapid.SampledFrom(slices.Sorted(maps.Keys(kinds()))).Draw(t, label+" kind") })
	draw("namespace", func() { s.ns = rapid.StringMatching(`[A-Za-z0-9_-]{11}`).Draw(t, label+" namespace") })
	draw("entity", func() { s.entity = anyName().Draw(t, label+" entity") })
	draw("resource", func() { s.resource = anyName().Draw(t, label+" resource") })
	draw("id", func() { s.id = rapid.StringMatching(`[a-z0-9-]{1,64}`).Draw(t, label+" id") })
	draw("variant", func() {
		s.variant = rapid.Uint64Range(0, 3).Draw(t, label+" variant") << rapid.IntRange(0, 62).Draw(t, label+" shift")
	})
	draw("generation", func() { s.generation = rapid.Uint64().Draw(t, label+" generation") })
	draw("shard", func() { s.shard = rapid.IntRange(0, MaxShards-1).Draw(t, label+" shard") })
	return s
}

// bare returns the subject without the fields that its kind does not have.
func (s subject) bare() subject {
	b := subject{kind: s.kind}
	switch s.kind {
	case "bucket":
		b = s
		b.id, b.generation = "", 0
	case "entity limits":
		b.ns, b.entity, b.resource = s.ns, s.entity, s.resource
	case "entity", "mark":
		b.ns, b.entity = s.ns, s.entity
	case "resource limits":
		b.ns, b.resource = s.ns, s.resource
	case "audit":
		b.ns, b.entity, b.id = s.ns, s.entity, s.id
	case "audit of a resource":
		b.ns, b.resource, b.id = s.ns, s.resource, s.id
	case "audit of the system":
		b.ns, b.id = s.ns, s.id
	case "change":
		b.ns, b.generation = s.ns, s.generation
	case "namespace":
		b.entity = s.entity
	case "system limits", "generation", "configuration", "namespace id":
		b.ns = s.ns
	case "secret":
		b.id = s.id
	}
	return b
}

// limits of DynamoDB, in bytes
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

// Two records have the same key only if they are the same record.
func TestKeysAreOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anySubject(t, "a", subject{kind: "entity", ns: "AbCdEfGhIj0", id: "i"})
		b := anySubject(t, "b", a)
		keyA, keyB := kinds()[a.kind](a), kinds()[b.kind](b)
		if same := a.bare() == b.bare(); same != (keyA == keyB) {
			t.Fatalf("%+v and %+v have the keys %v and %v", a, b, keyA, keyB)
		}
		if len(keyA.PK) > maxPartitionKey || len(keyA.SK) > maxSortKey || !utf8.ValidString(keyA.PK+keyA.SK) {
			t.Fatalf("%v is no key that DynamoDB takes: %d and %d bytes", keyA, len(keyA.PK), len(keyA.SK))
		}
	})
}

// TestKeysOfTheSchema: keys as the schema writes them.
func TestKeysOfTheSchema(t *testing.T) {
	const ns = "AbCdEfGhIj0"
	at := time.Date(2024, 1, 31, 14, 59, 0, 0, time.UTC)
	for _, test := range []struct {
		got    Key
		pk, sk string
	}{
		{EntityKey(ns, "user-1"), ns + "/ENTITY#user-1", "#META"},
		{BucketKey(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4"}, 3), ns + "/BUCKET#user-1#gpt-4#3", "#STATE"},
		{BucketKey(ns, limiter.BucketKey{Entity: "user-1", Resource: "gpt-4", Variant: 0xfeed}, 0), ns + "/BUCKET#user-1#gpt-4#000000000000feed#0", "#STATE"},
		{EntityLimitsKey(ns, "org/acme", "gpt-4"), ns + "/ENTITY#org%2Facme", "#CONFIG#gpt-4"},
		{EntityLimitsKey(ns, "", "_default_"), ns + "/ENTITY#~", "#CONFIG#_default_"},
		{resourceLimitsKey(ns, "gpt-4"), ns + "/RESOURCE#gpt-4", "#CONFIG"},
		{systemLimitsKey(ns), ns + "/SYSTEM#", "#CONFIG"},
		{AuditKey(ns, EscapeName("user-1"), limiter.AuditID(at, 255)), ns + "/AUDIT#user-1", "#AUDIT#2024-01-31T14:59:00.000Z-00000000000000ff"},
		{AuditKey(ns, EscapeName("$SYSTEM"), limiter.AuditID(at, 0)), ns + "/AUDIT#%24SYSTEM", "#AUDIT#2024-01-31T14:59:00.000Z-0000000000000000"},
		{VersionKey(), "_/SYSTEM#", "#VERSION"},
		{GenerationKey(ns), ns + "/SYSTEM#", "#GENERATION"},
		{ConfigurationKey(ns), ns + "/CONFIGURATION#", "#GENERATION"},
		{ChangeKey(ns, 42), ns + "/SYSTEM#", "#CHANGE#00000000000000000042"},
		{NamespaceKey("team/a"), "_/SYSTEM#", "#NAMESPACE#team%2Fa"},
		{NamespaceIDKey(ns), "_/SYSTEM#", "#NSID#" + ns},
		{MarkKey(ns, "r-1\xff/"), ns + "/SETTLED#r-1%FF%2F", "#MARK"},
		{SecretKey("reservation-1"), "_/SECRET#reservation-1", "#SECRET"},
	} {
		if test.got.PK != test.pk || test.got.SK != test.sk {
			t.Errorf("got %v, want %v", test.got, Key{test.pk, test.sk})
		}
	}
}

func TestIndexKeysOfTheSchema(t *testing.T) {
	const ns = "AbCdEfGhIj0"
	for what, test := range map[string]struct{ got, want map[string]string }{
		"root":   {EntityIndexes(ns, "org", ""), map[string]string{"GSI4SK": ns + "/ENTITY#org"}},
		"child":  {EntityIndexes(ns, "key/1", "org"), map[string]string{"GSI1PK": ns + "/PARENT#org", "GSI1SK": "CHILD#key%2F1", "GSI4SK": ns + "/ENTITY#key%2F1"}},
		"limits": {EntityLimitsIndexes(ns, "org", "gpt-4"), map[string]string{"GSI3PK": ns + "/ENTITY_CONFIG#gpt-4", "GSI3SK": "org", "GSI4SK": ns + "/LIMITS#org"}},
		"bucket": {BucketIndexes(ns, limiter.BucketKey{Entity: "org", Resource: "gpt-4", Variant: 1}, 2), map[string]string{
			"GSI2SK": "BUCKET#org#0000000000000001#2", "GSI3PK": ns + "/ENTITY#org", "GSI3SK": "BUCKET#gpt-4#0000000000000001#2", "GSI4SK": ns + "/BUCKET#org#gpt-4#0000000000000001#2",
		}},
	} {
		t.Run(what, func(t *testing.T) {
			pk := strings.Replace(test.got[AttrGSI4SK], "/LIMITS#", "/ENTITY#", 1)
			if _, found := test.got[AttrGSI2SK]; found {
				pk = strings.TrimSuffix(pk, "#0000000000000001#2") // a bucket is by its home
				wantPartition(t, test.got, AttrGSI2PK, ns+"/RESOURCE#gpt-4#", pk)
			}
			wantPartition(t, test.got, AttrGSI4PK, ns+"#", pk)
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// wantPartition takes an attribute out of keys that ends in the partition by hash of the key of the item.
func wantPartition(t *testing.T, keys map[string]string, attribute, prefix, pk string) {
	t.Helper()
	if want := fmt.Sprint(prefix, IndexPartition(pk)); keys[attribute] != want {
		t.Errorf("%s = %q, want %q", attribute, keys[attribute], want)
	}
	delete(keys, attribute)
}

// TestIndexPartitionsAreUsedEvenly: creations spread over the partition keys.
func TestIndexPartitionsAreUsedEvenly(t *testing.T) {
	const items = 16_000
	var count [IndexPartitions]int
	for i := range items {
		count[IndexPartition(BucketKey("AbCdEfGhIj0", limiter.BucketKey{Entity: fmt.Sprint("user-", i), Resource: "gpt-4"}, 0).PK)]++
	}
	for partition, n := range count {
		if n < items/IndexPartitions/2 || n > items/IndexPartitions*2 {
			t.Errorf("partition %d has %d of %d items", partition, n, items)
		}
	}
}

// TestIndexPartitionStays: the hash is part of the schema.
func TestIndexPartitionStays(t *testing.T) {
	if got := []int{IndexPartition(""), IndexPartition("a"), IndexPartition("AbCdEfGhIj0/ENTITY#user-1")}; !cmp.Equal(got, []int{5, 12, 4}) {
		t.Errorf("partitions %v; items that are stored would not be found any more", got)
	}
}

// TestMarksAreKnownInFull: the longest id that a mark can have stands in its key in full.
func TestMarksAreKnownInFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 1, limiter.MaxMarkLength).Draw(t, "id"))
		if k := MarkKey(someNS, id); IsHashed(id) {
			t.Fatalf("the id %q stands as its hash in %v", id, k)
		}
	})
}
