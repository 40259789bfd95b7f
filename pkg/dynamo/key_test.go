package dynamo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestNamesInKeys: what stands in keys for a name.
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
		if got := escapeName(test.name); got != test.want {
			t.Errorf("escapeName(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

// anyName draws names of any bytes, with many of the characters that mean something.
func anyName() *rapid.Generator[string] {
	special := rapid.StringOfN(rapid.RuneFrom([]rune("#/%~$_-a0\x00\x7f\u00e9\ufffd")), 0, 80, -1)
	raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")) })
	return rapid.OneOf(special, raw, rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return escapeName(raw.Draw(t, "stored form of"))
	}))
}

func TestNamesAreOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyName().Draw(t, "a"), anyName().Draw(t, "b")
		partA, partB := escapeName(a), escapeName(b)
		if (a == b) != (partA == partB) {
			t.Fatalf("names %q and %q stand as %q and %q", a, b, partA, partB)
		}
		if partA == "" || len(partA) > maxNamePart || !utf8.ValidString(partA) || strings.ContainsAny(partA, "#/$") {
			t.Fatalf("%q stands as %q (%d bytes)", a, partA, len(partA))
		}
		name, hashed, err := parseName(partA)
		if want := map[bool]string{false: a, true: partA}[hashed]; err != nil || name != want {
			t.Fatalf("parseName(%q) = %q, %t, %v; want %q", partA, name, hashed, err, want)
		}
	})
}

func TestParseNameRefuses(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for _, part := range []string{
		"", "a#b", "a/b", "%", "%2", "%zz", "%61", "%2f", "\xff", "~~", "a~", "~" + sum, "a~" + sum[1:], "a~" + sum[1:] + "A", "%61~" + sum,
		strings.Repeat("a", 136) + "~" + sum, strings.Repeat("a", 201),
	} {
		if name, _, err := parseName(part); err == nil {
			t.Errorf("parseName(%q) = %q; want an error: no name stands as that", part, name)
		}
	}
}

// anyKey draws a record and its key.
func anyKey(t *rapid.T) (parsedKey, key) {
	p := parsedKey{kind: rapid.SampledFrom([]recordKind{
		kindEntity, kindBucket, kindEntityLimits, kindResourceLimits, kindSystemLimits, kindUsage, kindAudit,
		kindVersion, kindGeneration, kindChange, kindNamespace, kindNamespaceID,
		kindMark, kindSecret,
	}).Draw(t, "kind")}
	p.ns = rapid.StringMatching(`[A-Za-z0-9_-]{11}`).Draw(t, "ns")
	entity, resource := anyName().Draw(t, "entity"), anyName().Draw(t, "resource")
	use := func(field *string, n string) {
		*field = n
		if part := escapeName(n); part != emptyName && strings.Contains(part, "~") {
			*field, p.hashed = part, true
		}
	}
	w := windowAt(rapid.SampledFrom([]windowLength{hourly, daily, monthly}).Draw(t, "length"), time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "time"), 0))
	switch p.kind {
	case kindEntity:
		use(&p.entity, entity)
		return p, entityKey(p.ns, entity)
	case kindBucket:
		use(&p.entity, entity)
		use(&p.resource, resource)
		p.variant = rapid.Uint64Range(0, 3).Draw(t, "variant") << rapid.IntRange(0, 62).Draw(t, "shift")
		p.shard = rapid.IntRange(0, maxShards-1).Draw(t, "shard")
		return p, bucketKey(p.ns, entity, resource, p.variant, p.shard)
	case kindEntityLimits:
		use(&p.entity, entity)
		use(&p.resource, resource)
		return p, entityLimitsKey(p.ns, entity, resource)
	case kindResourceLimits:
		use(&p.resource, resource)
		return p, resourceLimitsKey(p.ns, resource)
	case kindSystemLimits:
		return p, systemLimitsKey(p.ns)
	case kindUsage:
		use(&p.entity, entity)
		use(&p.resource, resource)
		p.window = w
		return p, usageKey(p.ns, entity, resource, w)
	case kindAudit:
		use(&p.entity, entity)
		p.entity, p.event = escapeName(entity), limiter.AuditID(w.start, rapid.Uint64().Draw(t, "sequence"))
		return p, auditKey(p.ns, p.entity, p.event)
	case kindGeneration:
		return p, generationKey(p.ns)
	case kindChange:
		p.generation = rapid.Uint64().Draw(t, "generation")
		return p, changeKey(p.ns, p.generation)
	case kindNamespace:
		p.ns = registryNS
		use(&p.name, entity)
		return p, namespaceKey(entity)
	case kindNamespaceID:
		p.name, p.ns = p.ns, registryNS
		return p, namespaceIDKey(p.name)
	case kindMark:
		use(&p.settled, entity)
		return p, markKey(p.ns, entity)
	case kindSecret:
		p.ns, p.name = registryNS, rapid.StringMatching(`[a-z0-9-]{1,64}`).Draw(t, "secret")
		return p, secretKey(p.name)
	case kindVersion:
		p.ns = registryNS
	}
	return p, versionKey()
}

// limits of DynamoDB, in bytes
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

func TestKeysParseToWhatTheyWereBuiltFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, k := anyKey(t)
		got, err := parseKey(k)
		if err != nil {
			t.Fatalf("parseKey: %v", err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(parsedKey{}, window{})); diff != "" {
			t.Fatalf("%v (-built from +parsed):\n%s", k, diff)
		}
		if len(k.pk) > maxPartitionKey || len(k.sk) > maxSortKey || !utf8.ValidString(k.pk+k.sk) {
			t.Fatalf("%v is no key that DynamoDB takes: %d and %d bytes", k, len(k.pk), len(k.sk))
		}
	})
}

func TestKeysAreOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, keyA := anyKey(t)
		b, keyB := anyKey(t)
		if same := cmp.Equal(a, b, cmp.AllowUnexported(parsedKey{}, window{})); same != (keyA == keyB) {
			t.Fatalf("%+v and %+v have the keys %v and %v", a, b, keyA, keyB)
		}
	})
}

// TestKeysOfTheSchema: keys as the schema writes them.
func TestKeysOfTheSchema(t *testing.T) {
	const ns = "AbCdEfGhIj0"
	at := time.Date(2024, 1, 31, 14, 59, 0, 0, time.UTC)
	for _, test := range []struct {
		got    key
		pk, sk string
	}{
		{entityKey(ns, "user-1"), ns + "/ENTITY#user-1", "#META"},
		{bucketKey(ns, "user-1", "gpt-4", 0, 3), ns + "/BUCKET#user-1#gpt-4#3", "#STATE"},
		{bucketKey(ns, "user-1", "gpt-4", 0xfeed, 0), ns + "/BUCKET#user-1#gpt-4#000000000000feed#0", "#STATE"},
		{entityLimitsKey(ns, "org/acme", "gpt-4"), ns + "/ENTITY#org%2Facme", "#CONFIG#gpt-4"},
		{entityLimitsKey(ns, "", "_default_"), ns + "/ENTITY#~", "#CONFIG#_default_"},
		{resourceLimitsKey(ns, "gpt-4"), ns + "/RESOURCE#gpt-4", "#CONFIG"},
		{systemLimitsKey(ns), ns + "/SYSTEM#", "#CONFIG"},
		{usageKey(ns, "user-1", "gpt-4", windowAt(hourly, at)), ns + "/ENTITY#user-1", "#USAGE#gpt-4#2024-01-31T14:00:00Z"},
		{usageKey(ns, "user-1", "gpt-4", windowAt(daily, at)), ns + "/ENTITY#user-1", "#USAGE#gpt-4#2024-01-31"},
		{usageKey(ns, "user-1", "gpt-4", windowAt(monthly, at)), ns + "/ENTITY#user-1", "#USAGE#gpt-4#2024-01"},
		{auditKey(ns, escapeName("user-1"), limiter.AuditID(at, 255)), ns + "/AUDIT#user-1", "#AUDIT#2024-01-31T14:59:00.000Z-00000000000000ff"},
		{auditKey(ns, escapeName("$SYSTEM"), limiter.AuditID(at, 0)), ns + "/AUDIT#%24SYSTEM", "#AUDIT#2024-01-31T14:59:00.000Z-0000000000000000"},
		{versionKey(), "_/SYSTEM#", "#VERSION"},
		{generationKey(ns), ns + "/SYSTEM#", "#GENERATION"},
		{changeKey(ns, 42), ns + "/SYSTEM#", "#CHANGE#00000000000000000042"},
		{namespaceKey("team/a"), "_/SYSTEM#", "#NAMESPACE#team%2Fa"},
		{namespaceIDKey(ns), "_/SYSTEM#", "#NSID#" + ns},
		{markKey(ns, "r-1\xff/"), ns + "/SETTLED#r-1%FF%2F", "#MARK"},
		{secretKey("reservation-1"), "_/SECRET#reservation-1", "#SECRET"},
	} {
		if test.got.pk != test.pk || test.got.sk != test.sk {
			t.Errorf("got %v, want %v", test.got, key{test.pk, test.sk})
		}
	}
}

func TestIndexKeysOfTheSchema(t *testing.T) {
	const ns = "AbCdEfGhIj0"
	w := windowAt(daily, time.Date(2024, 1, 31, 14, 59, 0, 0, time.UTC))
	for what, test := range map[string]struct{ got, want map[string]string }{
		"root":   {entityIndexes(ns, "org", ""), map[string]string{"GSI4SK": ns + "/ENTITY#org"}},
		"child":  {entityIndexes(ns, "key/1", "org"), map[string]string{"GSI1PK": ns + "/PARENT#org", "GSI1SK": "CHILD#key%2F1", "GSI4SK": ns + "/ENTITY#key%2F1"}},
		"limits": {entityLimitsIndexes(ns, "org", "gpt-4"), map[string]string{"GSI3PK": ns + "/ENTITY_CONFIG#gpt-4", "GSI3SK": "org", "GSI4SK": ns + "/ENTITY#org"}},
		"bucket": {bucketIndexes(ns, "org", "gpt-4", 1, 2), map[string]string{
			"GSI2SK": "BUCKET#org#0000000000000001#2", "GSI3PK": ns + "/ENTITY#org", "GSI3SK": "BUCKET#gpt-4#0000000000000001#2", "GSI4SK": ns + "/BUCKET#org#gpt-4#0000000000000001#2",
		}},
		"usage": {usageIndexes(ns, "org", "gpt-4", w), map[string]string{"GSI2SK": "USAGE#2024-01-31#org", "GSI4SK": ns + "/ENTITY#org"}},
	} {
		t.Run(what, func(t *testing.T) {
			if _, found := test.got[attrGSI2SK]; found {
				wantPartition(t, test.got, attrGSI2PK, ns+"/RESOURCE#gpt-4#", attrGSI4SK)
			}
			wantPartition(t, test.got, attrGSI4PK, ns+"#", attrGSI4SK)
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// wantPartition takes an attribute out of keys that ends in the partition by hash of another.
func wantPartition(t *testing.T, keys map[string]string, attribute, prefix, by string) {
	t.Helper()
	if want := fmt.Sprint(prefix, indexPartition(keys[by])); keys[attribute] != want {
		t.Errorf("%s = %q, want %q", attribute, keys[attribute], want)
	}
	delete(keys, attribute)
}

// TestIndexPartitionsAreUsedEvenly: creations spread over the partition keys.
func TestIndexPartitionsAreUsedEvenly(t *testing.T) {
	const items = 16_000
	var count [indexPartitions]int
	for i := range items {
		count[indexPartition(bucketKey("AbCdEfGhIj0", fmt.Sprint("user-", i), "gpt-4", 0, 0).pk)]++
	}
	for partition, n := range count {
		if n < items/indexPartitions/2 || n > items/indexPartitions*2 {
			t.Errorf("partition %d has %d of %d items", partition, n, items)
		}
	}
}

// TestIndexPartitionStays: the hash is part of the schema.
func TestIndexPartitionStays(t *testing.T) {
	if got := []int{indexPartition(""), indexPartition("a"), indexPartition("AbCdEfGhIj0/ENTITY#user-1")}; !cmp.Equal(got, []int{5, 12, 4}) {
		t.Errorf("partitions %v; items that are stored would not be found any more", got)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, k := range []key{
		entityKey("AbCdEfGhIj0", "user-1"), bucketKey("AbCdEfGhIj0", "e", "r", 7, 31), entityLimitsKey("AbCdEfGhIj0", "", "r#"), usageKey("AbCdEfGhIj0", "e", "r", windowAt(monthly, time.Unix(0, 0))),
		auditKey("AbCdEfGhIj0", subjectResourcePrefix+"r", limiter.AuditID(time.Unix(0, 0), 1)), changeKey("AbCdEfGhIj0", 1), namespaceKey("n"), namespaceIDKey("AbCdEfGhIj0"), versionKey(),
		markKey("AbCdEfGhIj0", "r\x00"), secretKey("k-1"),
		{"AbCdEfGhIj0/BUCKET#e#r#0#0#0", "#STATE"},
		{"/", ""},
		{"AbCdEfGhIj0/AUDIT#$", "#AUDIT#"},
		{"_/SETTLED#r", "#MARK"},
		{"AbCdEfGhIj0/SECRET#k", "#SECRET"},
		{"_/SECRET#", "#SECRET"},
		{"_/SECRET#K", "#SECRET"},
	} {
		f.Add(k.pk, k.sk)
	}
	f.Fuzz(func(t *testing.T, pk, sk string) {
		p, err := parseKey(key{pk, sk})
		switch {
		case err != nil && !strings.Contains(err.Error(), "is no key of a record"):
			t.Errorf("error %q does not say that it is about a key", err)
		case err == nil && !utf8.ValidString(pk+sk):
			t.Errorf("%q %q was taken for %+v, though no key is such", pk, sk, p)
		case err == nil && !p.hashed && rebuild(p) != key{pk, sk}:
			t.Errorf("%q %q is %+v, which has the key %v", pk, sk, p, rebuild(p))
		}
	})
}

// rebuild builds the key that a parsed one must have come from.
func rebuild(p parsedKey) key {
	switch p.kind {
	case kindEntity:
		return entityKey(p.ns, p.entity)
	case kindBucket:
		return bucketKey(p.ns, p.entity, p.resource, p.variant, p.shard)
	case kindEntityLimits:
		return entityLimitsKey(p.ns, p.entity, p.resource)
	case kindResourceLimits:
		return resourceLimitsKey(p.ns, p.resource)
	case kindSystemLimits:
		return systemLimitsKey(p.ns)
	case kindUsage:
		return usageKey(p.ns, p.entity, p.resource, p.window)
	case kindAudit:
		return auditKey(p.ns, p.entity, p.event)
	case kindGeneration:
		return generationKey(p.ns)
	case kindChange:
		return changeKey(p.ns, p.generation)
	case kindNamespace:
		return namespaceKey(p.name)
	case kindNamespaceID:
		return namespaceIDKey(p.name)
	case kindMark:
		return markKey(p.ns, p.settled)
	case kindSecret:
		return secretKey(p.name)
	case kindVersion:
	}
	return versionKey()
}

// TestMarksAreKnownInFull: the longest id that a mark can have stands in its key in full.
func TestMarksAreKnownInFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 1, limiter.MaxMarkLength).Draw(t, "id"))
		got, err := parseKey(markKey("AbCdEfGhIj0", id))
		if err != nil || got.settled != id || got.hashed {
			t.Fatalf("the key of %q says %q, hashed %t, %v", id, got.settled, got.hashed, err)
		}
	})
}
