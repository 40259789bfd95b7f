package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestNamesOfBucketsComeBack: an item says which bucket it is of, for names of any bytes; one
// that is too long stands as in the key. The keys of shards differ by their index alone.
func TestNamesOfBucketsComeBack(t *testing.T) {
	name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "~", "0000000000000001@1_2_0000000000000003", "a#b/c", "%41", "\xff", strings.Repeat("x", 220), strings.Repeat("/", 220)}))
	rapid.Check(t, func(t *rapid.T) {
		want := limiter.BucketKey{Entity: name.Draw(t, "entity"), Resource: name.Draw(t, "resource"), Variant: rapid.OneOf(rapid.Uint64(), rapid.Uint64Min(limiter.ShadowVariants)).Draw(t, "variant")}
		if rapid.Bool().Draw(t, "windowed") {
			want.Window = limiter.Window{Start: rapid.Int64().Draw(t, "start"), End: rapid.Int64().Draw(t, "end"), Calendar: rapid.Uint64().Draw(t, "calendar")}
		}
		shard := rapid.IntRange(0, schema.MaxShards-1).Draw(t, "shard")
		k := schema.BucketKey("ns", want, shard)
		got, index, err := schema.BucketOfItem("t", k, schema.NewBucketItem("ns", want, shard))
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Entity) > 256 && got.Entity == schema.EscapeName(want.Entity) {
			got.Entity = want.Entity
		}
		if len(want.Resource) > 256 && got.Resource == schema.EscapeName(want.Resource) {
			got.Resource = want.Resource
		}
		if got != want || index != shard {
			t.Fatalf("%+v and %d, want %+v and %d", got, index, want, shard)
		}
		item := map[string]types.AttributeValue{}
		for _, limit := range []string{"rpm", "usd.month"} {
			item[schema.LimitAttr(limit, schema.LimitConsumed)] = schema.NumberAttribute(5)
		}
		image, err := schema.BucketImage("t", k, item)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []string{"rpm", "usd.month"} {
			if _, counted := image.Consumed[limit]; counted == want.Uncounted(limit) {
				t.Fatalf("the usage of %s in %v counts: %t; of the variant %x it does: %t", limit, k, counted, want.Variant, !want.Uncounted(limit))
			}
		}
		if sibling := schema.ShardKey(k, 31); sibling != schema.BucketKey("ns", want, 31) {
			t.Fatalf("the key of shard 31 is %v", sibling)
		}
	})
	for _, pk := range []string{"ns/BUCKET#e", "ns/BUCKET#e#r#x", "ns/BUCKET#e#r#32", "ns/BUCKET#e#r#1#g", "ns/BUCKET#%4#r#0", "ns/ENTITY#e", "ns/BUCKET#e#r#1#2#3"} {
		if _, _, err := schema.BucketOfItem("t", schema.Key{PK: pk, SK: "#STATE"}, nil); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: error %v, want %q", pk, err, limiter.ErrInvalid)
		}
	}
}

// TestLeaves: a tree is settled when each shard that was split off is there, of that birth, and
// none is retired or still to be made.
func TestLeaves(t *testing.T) {
	tree := func() map[int]*schema.Bucket {
		items := map[int]*schema.Bucket{}
		for _, s := range []schema.Shard{
			{Index: 0, Level: 4, Births: [5]int64{7, 9}}, {Index: 1, Level: 2, Birth: 7}, {Index: 2, Level: 4, Birth: 9},
		} {
			items[s.Index] = &schema.Bucket{Shard: s}
		}
		return items
	}
	for name, test := range map[string]struct {
		change  func(items map[int]*schema.Bucket)
		leaves  int
		settled bool
	}{
		"whole":             {func(map[int]*schema.Bucket) {}, 3, true},
		"one shard":         {func(i map[int]*schema.Bucket) { i[0].Shard = schema.WholeBucket(0) }, 1, true},
		"a missing one":     {func(i map[int]*schema.Bucket) { delete(i, 2) }, 2, false},
		"a retired one":     {func(i map[int]*schema.Bucket) { i[1].Shard.Retired = true }, 2, false},
		"one of before":     {func(i map[int]*schema.Bucket) { i[1].Shard.Birth = 6 }, 2, false},
		"one to be made":    {func(i map[int]*schema.Bucket) { i[2].Shard.Moving = true }, 3, false},
		"one that is apart": {func(i map[int]*schema.Bucket) { i[3] = &schema.Bucket{Shard: schema.Shard{Index: 3, Level: 4}} }, 3, true},
		"nothing":           {func(i map[int]*schema.Bucket) { clear(i) }, 0, false},
	} {
		items := tree()
		test.change(items)
		if leaves, settled := schema.Leaves(items); len(leaves) != test.leaves || settled != test.settled {
			t.Errorf("%s: %d leaves, settled %t; want %d, %t", name, len(leaves), settled, test.leaves, test.settled)
		}
	}
}
