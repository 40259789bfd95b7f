package embedded

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/recordtest"
)

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
	limits := recordtest.Limits(1).Draw(t, "limits")
	key := limiter.BucketKey{Namespace: recordtest.Names().Draw(t, "namespace"), Entity: recordtest.Names().Draw(t, "entity"), Resource: recordtest.Names().Draw(t, "resource"), Variant: rapid.Uint64().Draw(t, "variant"), Window: rapid.SampledFrom([]limiter.Window{{}, {Start: -1, End: 5, Calendar: 1 << 63}, {End: 1}}).Draw(t, "window")}
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

// kept is the contents of a bucket's record.
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

// TestLayoutOfABucket notices a change of the format, which needs another version.
func TestLayoutOfABucket(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("day", 100), limiter.PerMinute("min", 10))
	op := opOf("ada", limits, 0)
	b := newBucket(&op, 1000)
	b.first.Tokens, b.rest.balances[0].Remainder = 70_000, 7
	b.rest.dormant = []dormant{{limit: limiter.PerHour("old", 3), bucket: tokenbucket.Bucket{Tokens: 5, Refilled: 900}}}
	key, head := keyOf(b.identity())
	const want = "010100000203646179c801c80180f0b25200036d696e1414c0a90700e0c50800d00f000000a09c010ed00f00000001036f6c64060680bab703000a00880e000000"
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
		key, head := keyOf(b.identity())
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

func TestDamagedBucketsAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBucket(t)
		key, head := keyOf(b.identity())
		value := b.record(head, false)
		recordtest.RefusesDamage(t, value, errFormat, func(v []byte) error {
			_, err := parseBucket(key, v, map[string]*limiter.Limits{})
			return err
		})
		if len(head) == 0 {
			recordtest.RefusesDamage(t, key, errFormat, func(k []byte) error {
				_, err := parseBucket(k, value, map[string]*limiter.Limits{})
				return err
			})
		}
		value[len(head)]++
		if _, err := parseBucket(key, value, map[string]*limiter.Limits{}); !errors.Is(err, errFormat) {
			t.Fatalf("of the next version: %v, want record.ErrFormat", err)
		}
	})
}

// A long identity has a key of 33 bytes, and is read from the record.
func TestLongNamesOfBuckets(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("l", 1))
	long := string(slices.Repeat([]byte("n"), 5000))
	op := limiter.Op{Bucket: limiter.BucketKey{Namespace: long, Entity: long, Resource: long}, Limits: limits}
	b := newBucket(&op, 0)
	key, head := keyOf(b.identity())
	r, err := parseBucket(key, b.record(head, true), map[string]*limiter.Limits{})
	if err != nil || !r.is(&op.Bucket) || r.entity != limiter.ShortName(long) || len(key) != 33 {
		t.Errorf("got %v, %v, a key of %d bytes", r.bucket, err, len(key))
	}
}
