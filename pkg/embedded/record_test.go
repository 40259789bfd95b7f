package embedded

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Generators of what records hold: names are any bytes, of any length.

func names() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "name")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			name = slices.Repeat(append(name, 'x'), 40)
		}
		return string(name)
	})
}

func someLimits(least int) *rapid.Generator[*limiter.Limits] {
	return rapid.Custom(func(t *rapid.T) *limiter.Limits {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "rpm", "tpm.day"}), least, 4, rapid.ID[string]).Draw(t, "names")
		all := make([]limiter.Limit, len(names))
		for i, name := range names {
			all[i] = oneLimit(t, name)
		}
		limits, err := limiter.NewLimits(all...)
		if err != nil {
			t.Fatal(err)
		}
		return limits
	})
}

func oneLimit(t *rapid.T, name string) limiter.Limit {
	if rapid.IntRange(0, 5).Draw(t, "unlimited") == 0 {
		return limiter.Unlimited(name)
	}
	tokens := rapid.Int64Range(1, limiter.MaxTokens)
	period := time.Duration(rapid.Int64Range(tokenbucket.MinPeriod, tokenbucket.MaxPeriod).Draw(t, "period")) * time.Millisecond
	l := limiter.Custom(name, tokens.Draw(t, "capacity"), tokens.Draw(t, "refill"), period)
	return l.WithMaxDebt(rapid.SampledFrom([]int64{0, limiter.NoDebt, 1, 1000, limiter.MaxTokens}).Draw(t, "debt"))
}

func anyBalance() *rapid.Generator[tokenbucket.Bucket] {
	return rapid.Custom(func(t *rapid.T) tokenbucket.Bucket {
		return tokenbucket.Bucket{
			Carried:   rapid.SampledFrom([]int64{0, 0, 0, 1, tokenbucket.MaxCapacity}).Draw(t, "carried"),
			Tokens:    rapid.Int64Range(-tokenbucket.MaxAmount, tokenbucket.MaxCapacity).Draw(t, "tokens"),
			Remainder: rapid.Int64Range(0, tokenbucket.MinPeriod-1).Draw(t, "remainder"),
			Refilled:  rapid.Int64().Draw(t, "refilled"),
		}
	})
}

// anyBucket draws a bucket with a block.
func anyBucket(t *rapid.T) *bucket {
	limits := someLimits(1).Draw(t, "limits")
	key := limiter.BucketKey{Namespace: names().Draw(t, "namespace"), Entity: names().Draw(t, "entity"), Resource: names().Draw(t, "resource"), Variant: rapid.Uint64().Draw(t, "variant")}
	b := newBucket(&limiter.Op{Bucket: key, Limits: limits, Generation: rapid.Uint64().Draw(t, "generation")}, 0)
	b.block = newBlock(limits, 0)
	b.block.hour = hourOf(rapid.Int64().Draw(t, "time"))
	b.block.events = rapid.SampledFrom([]int64{0, 0, 1, math.MaxInt64}).Draw(t, "events")
	for i := range limits.Len() {
		if limits.Unlimited(i) {
			*b.balance(i) = tokenbucket.Bucket{}
			continue
		}
		*b.balance(i) = anyBalance().Draw(t, "balance")
		s := b.block.span(i)
		s.nextSize, s.used = rapid.Int64Range(0, maxFlow).Draw(t, "size"), rapid.Int64().Draw(t, "used")
	}
	for range rapid.IntRange(0, 2).Draw(t, "dormant") {
		l := limiter.PerHour("dormant", rapid.Int64Range(1, limiter.MaxTokens).Draw(t, "rate"))
		more := b.more()
		more.dormant = append(more.dormant, dormant{limit: l, bucket: anyBalance().Draw(t, "asleep")})
	}
	if rapid.IntRange(0, 3).Draw(t, "forgotten") == 0 {
		b.more().forgotten = forgotten{until: rapid.Int64().Draw(t, "until"), use: rapid.Int64Range(1, tokenbucket.MaxAmount).Draw(t, "use")}
	}
	return b
}

// kept is what a bucket's record keeps.
type kept struct {
	Namespace, Entity, Resource string
	Variant, Generation         uint64
	Limits                      []limiter.Limit
	Balances                    []tokenbucket.Bucket
	Sizes, Used                 []int64
	Hour, Events                int64
	Dormant                     []dormant
	Forgotten                   forgotten
}

func keptOf(b *bucket, size func(int) int64) kept {
	k := kept{
		Namespace: b.namespace.Value(), Entity: b.entity, Resource: b.resource.Value(),
		Variant: b.variant, Generation: b.generation,
	}
	for i := range b.limits.Len() {
		k.Limits, k.Balances, k.Sizes = append(k.Limits, b.limits.At(i)), append(k.Balances, *b.balance(i)), append(k.Sizes, size(i))
		used := int64(0)
		if b.block != nil {
			used = b.block.span(i).used
		}
		k.Used = append(k.Used, used)
	}
	if b.block != nil && b.block.unsaved() {
		k.Hour, k.Events = b.block.hour, b.block.events
	}
	if b.rest != nil {
		k.Dormant, k.Forgotten = b.rest.dormant, b.rest.forgotten
	}
	return k
}

// TestRecordsOfVersion1 reads what was written before buckets carried use, and writes
// the same as long as they carry none.
func TestRecordsOfVersion1(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("day", 100), limiter.PerMinute("min", 10))
	op := opOf("ada", limits, 0)
	b := newBucket(&op, 1000)
	b.first.Tokens, b.rest.balances[0].Remainder = 70_000, 7
	b.rest.dormant = []dormant{{limit: limiter.PerHour("old", 3), bucket: tokenbucket.Bucket{Tokens: 5, Refilled: 900}}}
	key, head := identified(b.identity())
	const want = "0101000203646179c801c80180f0b25200036d696e1414c0a90700e0c50800d00f0000a09c010ed00f000001036f6c64060680bab703000a00880e"
	value := b.record(head, true)
	if value[len(head)] != bucketVersion {
		t.Errorf("a record of version %d, want %d", value[len(head)], bucketVersion)
	}
	if got := hex.EncodeToString(value[len(head):]); got != want {
		t.Errorf("record %s, want %s", got, want)
	}
	r, err := parseBucket(key, value, map[string]*limiter.Limits{})
	if err != nil || r.first != b.first || r.rest.dormant[0] != b.rest.dormant[0] {
		t.Errorf("read back: %+v, %v", r.bucket, err)
	}
}

func TestBucketsComeBackFromTheirRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBucket(t)
		key, head := identified(b.identity())
		exact := rapid.Bool().Draw(t, "exact")
		r, err := parseBucket(key, b.record(head, exact), map[string]*limiter.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		want := keptOf(b, func(i int) int64 {
			if exact {
				return 0
			}
			return b.block.span(i).nextSize
		})
		got := keptOf(r.bucket, func(i int) int64 { return r.sizes[i] })
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(dormant{}, forgotten{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// refusesDamage checks that what was cut short, or has something behind it, is refused.
func refusesDamage(t *rapid.T, value []byte, parse func([]byte) error) {
	t.Helper()
	for n := range value {
		if err := parse(value[:n]); !errors.Is(err, errRecord) {
			t.Fatalf("the first %d of %d bytes: %v, want errRecord", n, len(value), err)
		}
	}
	if err := parse(append(slices.Clip(value), 0)); !errors.Is(err, errRecord) {
		t.Fatalf("a byte too many: %v, want errRecord", err)
	}
}

func TestDamagedBucketsAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBucket(t)
		key, head := identified(b.identity())
		value := b.record(head, false)
		refusesDamage(t, value, func(v []byte) error {
			_, err := parseBucket(key, v, map[string]*limiter.Limits{})
			return err
		})
		if len(head) == 0 {
			refusesDamage(t, key, func(k []byte) error {
				_, err := parseBucket(k, value, map[string]*limiter.Limits{})
				return err
			})
		}
		value[len(head)]++
		if _, err := parseBucket(key, value, map[string]*limiter.Limits{}); !errors.Is(err, errRecord) {
			t.Fatalf("of the next version: %v, want errRecord", err)
		}
	})
}

// anyRecord draws an entity, or limits.
func anyRecord(t *rapid.T) (recordKey, limiter.Record) {
	k := recordKey{namespace: names().Draw(t, "namespace")}
	id, resource := names().Draw(t, "entity"), names().Draw(t, "resource")
	disabled := rapid.Bool().Draw(t, "disabled")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 4:
		k.ref = limiter.EntityRef(id)
		return k, limiter.Record{Disabled: true}
	case 0:
		k.ref = limiter.EntityRef(id)
		return k, limiter.Record{Disabled: disabled, Entity: &limiter.Entity{
			ID: id, Name: names().Draw(t, "name"), Parent: names().Draw(t, "parent"), Cascade: rapid.Bool().Draw(t, "cascade"),
			Version: rapid.Uint64().Draw(t, "version"), Metadata: rapid.MapOfN(names(), names(), 0, 3).Draw(t, "metadata"),
			CreatedAt: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "created"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")),
		}}
	case 1:
		k.ref = limiter.EntityLimitsRef(id, resource)
	case 2:
		k.ref = limiter.ResourceLimitsRef(resource)
	default:
		k.ref = limiter.SystemLimitsRef()
		r := limiter.Record{Disabled: disabled, Limits: someLimits(0).Draw(t, "limits"), OnUnavailable: limiter.Policy(rapid.ByteRange(0, byte(limiter.Local)).Draw(t, "policy"))}
		r.Budgets = someBudgets(t, r.Limits)
		if r.State = limiter.NamespaceState(rapid.ByteRange(0, byte(limiter.NamespacePurged)).Draw(t, "state")); r.State != limiter.NamespaceActive {
			r.Since = time.UnixMilli(rapid.Int64Range(-1<<40, 1<<42).Draw(t, "since")).UTC()
		}
		return k, r
	}
	r := limiter.Record{Limits: someLimits(1).Draw(t, "limits")}
	r.Budgets = someBudgets(t, r.Limits)
	return k, r
}

// someBudgets draws budgets of limits.
func someBudgets(t *rapid.T, limits *limiter.Limits) *limiter.Budgets {
	var all []limiter.Budget
	for i := range limits.Len() {
		for _, w := range limiter.UsageWindows() {
			if !limits.Unlimited(i) && rapid.IntRange(0, 3).Draw(t, "budget") == 0 {
				all = append(all, limiter.Budget{Limit: limits.At(i).Name, Window: w, Tokens: rapid.Int64Range(1, limiter.MaxTokens).Draw(t, "budget's tokens")})
			}
		}
	}
	budgets, err := limiter.NewBudgets(all...)
	if err != nil {
		t.Fatal(err)
	}
	return budgets
}

func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, want := anyRecord(t)
		key, head := identified(k.identity())
		value := appendRecord(head, k.ref, want)
		gotKey, got, err := parseRecord(key, value)
		if err != nil || gotKey != k {
			t.Fatalf("got %+v, %v; want %+v", gotKey, err, k)
		}
		if diff := cmp.Diff(want, got, sameLimits(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if version := value[len(head)]; (version == budgetVersion) != (want.Budgets.Len() > 0) {
			t.Fatalf("a record of %d budgets has version %d", want.Budgets.Len(), version)
		}
		refusesDamage(t, value, func(v []byte) error { _, _, err := parseRecord(key, v); return err })
	})
}

// sameLimits compares limits by what they say.
func sameLimits() cmp.Option {
	return cmp.Comparer(func(a, b *limiter.Limits) bool { return a.Hash() == b.Hash() || a.Len()+b.Len() == 0 })
}

func TestEventsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := limiter.AuditEvent{
			Time:   time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "time")).UTC(),
			Action: names().Draw(t, "action"), Detail: names().Draw(t, "detail"), Generation: rapid.Uint64().Draw(t, "generation"),
			Subject: limiter.Ref{Kind: limiter.RefKind(rapid.ByteRange(0, byte(limiter.RefSystemLimits)).Draw(t, "kind")), Entity: names().Draw(t, "entity"), Resource: names().Draw(t, "resource")},
		}
		want.ID = limiter.AuditID(want.Time, want.Generation)
		want.Principal = names().Draw(t, "principal")
		if want.Subject.Kind == limiter.RefEntity {
			want.Before.Entity = &limiter.Entity{ID: want.Subject.Entity, Name: names().Draw(t, "name"), CreatedAt: want.Time, Version: 7}
		} else {
			want.Before.Limits, want.After.Limits = someLimits(1).Draw(t, "before"), someLimits(1).Draw(t, "after")
		}
		value := appendEvent(nil, &want)
		got, err := parseEvent(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameLimits()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		refusesDamage(t, value, func(v []byte) error { _, err := parseEvent(v); return err })
	})
}

// No two identities share a key, and none is read as another.
func TestIdentities(t *testing.T) {
	seen := map[string]string{}
	for _, identity := range []string{"", "a", string(make([]byte, longestKey)), string(make([]byte, longestKey+1)), string(append([]byte{hashed}, make([]byte, 32)...))} {
		key, head := identified([]byte(identity))
		if other, found := seen[string(key)]; found || len(key) > longestKey {
			t.Errorf("identities of %d and %d bytes share a key of %d", len(identity), len(other), len(key))
		}
		seen[string(key)] = identity
		got, rest, ok := identityOf(key, append(head, "value"...))
		if len(identity) == 33 { // as no identity begins, and as keys that are hashes do
			if ok {
				t.Errorf("a key that is no hash of what the record says passes")
			}
			continue
		}
		if !ok || string(got) != identity || string(rest) != "value" {
			t.Errorf("identity of %d bytes: got one of %d bytes, %t, value %q", len(identity), len(got), ok, rest)
		}
	}
}

// What records have in common with others that look alike.
func TestLongNamesOfBuckets(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("l", 1))
	long := string(slices.Repeat([]byte("n"), 5000))
	op := limiter.Op{Bucket: limiter.BucketKey{Namespace: long, Entity: long, Resource: long}, Limits: limits}
	b := newBucket(&op, 0)
	key, head := identified(b.identity())
	r, err := parseBucket(key, b.record(head, true), map[string]*limiter.Limits{})
	if err != nil || !r.is(&op.Bucket) || r.entity != shortname.Of(long) || len(key) != 33 {
		t.Errorf("got %v, %v, a key of %d bytes", r.bucket, err, len(key))
	}
}
