package schema_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const bucketTime = 1_760_000_000_000

func bucketLimits(t interface{ Fatal(args ...any) }, all ...limiter.Limit) *limiter.Limits {
	l, err := limiter.NewLimits(all...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// anyBucket draws a state with all that an item can have.
func anyBucket(t *rapid.T) *schema.Bucket {
	draw := func(what string, least, most int64) int64 { return rapid.Int64Range(least, most).Draw(t, what) }
	b := schema.NewBucket(bucketLimits(t,
		limiter.Custom("a", draw("capacity", 1, 1000), draw("refill", 1, 1000), time.Second).WithMaxDebt(draw("debt", -1, 1000)),
		limiter.PerDay("b_c", 12), limiter.Unlimited("free")), rapid.Uint64().Draw(t, "generation"), draw("now", schema.MinTime, schema.MaxTime))
	b.Serial, b.TTL, b.Taken = draw("n", 1, 1<<40), draw("ttl", 0, schema.MaxTTL), draw("taken", schema.MinTime, schema.MaxTime)
	b.Pending = rapid.Uint64().Draw(t, "pending")
	for i := range schema.SlotCount {
		if rapid.Bool().Draw(t, "slot") {
			channel := rapid.IntRange(0, schema.ChannelCount-1).Draw(t, "channel")
			b.Slots[i][channel] = schema.NewWriteID(rapid.Uint32().Draw(t, "replica"), rapid.Uint64Min(1).Draw(t, "number"))
			b.Booked[i] = schema.NewWriteID(rapid.Uint32().Draw(t, "replica"), rapid.Uint64Min(1).Draw(t, "number"))
		}
	}
	if rapid.Bool().Draw(t, "sharded") {
		b.Shard.Index, b.Shard.Level, b.Shard.Birth = 1, 8, draw("birth", 0, schema.MaxEpoch)
		b.Shard.Births[1], b.Shard.Births[2] = draw("births", 0, 1<<50), draw("births", 1, 1<<50)
		if b.Shard.Moving = rapid.Bool().Draw(t, "moving"); b.Shard.Moving {
			b.MovedAt = draw("moved", schema.MinTime, schema.MaxTime)
		}
		b.Shard.Retired = rapid.Bool().Draw(t, "retired")
	}
	if rapid.Bool().Draw(t, "forgotten") {
		b.Forgotten = schema.Forgotten{Until: draw("until", schema.MinTime, schema.MaxTime), Use: draw("use", 1, schema.MaxTime)}
	}
	b.Balances = append(b.Balances, b.Shard.NewBalance(limiter.PerHour("old", 5), 0))
	b.Balances[2].Dormant = true
	for i := range b.Balances {
		of := &b.Balances[i]
		of.Share, of.Floor = b.Shard.Share(of.Whole), b.Shard.Floor(of.Limit.DebtFloor())
		of.FullAt = schema.Product(draw("v", schema.MinTime, schema.MaxTime), draw("v", -1<<60, 1<<60))
		of.Carried = draw("carried", 0, 1000)
		if b.Shard.Moving {
			of.Moving, of.Aside = draw("moving", 0, 1000), draw("aside", 0, 1000)
		}
	}
	for i := range draw("leases", 0, schema.MaxLeases) {
		l := schema.Lease{
			Replica: uint32(i) << 20, Sequence: rapid.Uint16().Draw(t, "sequence"), At: rapid.Uint8().Draw(t, "at"), // #nosec G115 -- few
			Rate: int(draw("rate", 0, int64(b.Line.Rate))), Room: int(draw("room", 0, int64(b.Line.Room))),
			Demand: int(draw("demand", 0, schema.MaxHint)), Stock: int(draw("stock", 0, schema.MaxHint)),
		}
		b.Line.Rate, b.Line.Room = b.Line.Rate-l.Rate, b.Line.Room-l.Room
		b.Leases = append(b.Leases, l)
	}
	if b.Leased() {
		b.Line.Offset = draw("offset", schema.MinTime, schema.MaxTime)
	}
	return b
}

func bucketKey(b *schema.Bucket) schema.Key {
	return schema.BucketKey("ns", limiter.BucketKey{Entity: "e", Resource: "r"}, b.Shard.Index)
}

// TestABucketComesBack: an item that is written is read as it was.
func TestABucketComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyBucket(t)
		item := want.Attributes()
		got, err := schema.ParseBucket("t", bucketKey(want), item, nil)
		if err != nil {
			t.Fatal(err)
		}
		got.Limits, got.Size = want.Limits, want.Size
		for i := range got.Balances { // limits stand for the same in several forms
			if g, w := got.Balances[i].Limit, want.Balances[i].Limit; g.DebtFloor() == w.DebtFloor() {
				got.Balances[i].Limit.MaxDebt = w.MaxDebt
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		if again := got.Attributes(); !reflect.DeepEqual(again, item) {
			t.Fatalf("written again it is %v, want %v", again, item)
		}
	})
}

// TestABrokenBucketIsNamed: each attribute that is of another type, out of range or without
// those that it belongs to is an error that names it.
func TestABrokenBucketIsNamed(t *testing.T) {
	whole := schema.NewBucket(bucketLimits(t, limiter.PerSecond("a", 10), limiter.Unlimited("free")), 1, bucketTime)
	whole.Serial, whole.TTL = 1, 1_760_000_100
	number := func(n any) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	binary := func(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }
	text := &types.AttributeValueMemberS{Value: "x"}
	for _, tt := range []struct {
		attr  string
		value types.AttributeValue // nil = absent
		named string               // "" = attr
	}{
		{"n", nil, ""},
		{"n", number(0), ""},
		{"n", text, ""},
		{"n", number("1.5"), ""},
		{"ep", nil, ""},
		{"ep", number(-1), ""},
		{"ep", number(1<<53 + 1), ""},
		{"at", nil, ""},
		{"at", number("9223372036854775808"), ""},
		{"cv", number(7), ""},
		{"cv", number(-1), ""},
		{"cg", text, ""},
		{"cg", nil, ""},
		{"lt", text, ""},
		{"ttl", number(-5), ""},
		{"wcu", number(-1), ""},
		{"fz", text, ""},
		{"fu", number(-1), ""},
		{"lw0", text, ""},
		{"lw3", binary("abcd"), ""},
		{"lc7", binary("abcd\x00\x01"), ""},
		{"lc7", binary("0123456789abc"), ""},
		{"lvl", number(3), ""},
		{"lvl", nil, ""},
		{"lvl", number(64), ""},
		{"mv", number(1), ""},
		{"rt", number(2), ""},
		{"rt", number(1), ""}, // of the first shard
		{"be", text, ""},
		{"kc", number(1000), ""},
		{"bc", number(1000), ""},
		{"kt", number(0), ""},
		{"ls", binary("123456789012"), "kc"},
		{"nv", number(0), ""},
		{"nv", text, ""},
		{"b_a_v", nil, "b_a_v"},
		{"b_a_v", text, ""},
		{"b_a_v", number("1e5"), ""},
		{"b_a_v", number("1" + strings.Repeat("0", 38)), ""},
		{"b_a_cp", nil, ""},
		{"b_a_cp", number(0), ""},
		{"b_a_cp", number(11_000), "cv"},
		{"b_a_ra", number(-1), ""},
		{"b_a_rp", number(999), ""},
		{"b_a_fl", number(1), ""},
		{"b_a_cu", number("-1000000000000000001"), ""},
		{"b_a_tc", text, ""},
		{"b_a_dz", number(2), ""},
		{"b_a_mv", text, ""},
		{"b_a_mc", number(-1), ""},
		{"b_a_zz", number(1), ""},
		{"b_", number(1), ""},
		{"b_free_un", number(2), ""},
		{"b_free_un", nil, "cv"},
		{"b_x_cp", number(1), "b_x_v"},
	} {
		item := whole.Attributes()
		if tt.value == nil {
			delete(item, tt.attr)
		} else {
			item[tt.attr] = tt.value
		}
		named := tt.attr
		if tt.named != "" {
			named = tt.named
		}
		_, err := schema.ParseBucket("t", bucketKey(whole), item, nil)
		corrupt, ok := errors.AsType[*schema.CorruptError](err)
		if !ok || corrupt.Attribute != named || !errors.Is(err, limiter.ErrInvalid) || corrupt.Table != "t" || !strings.Contains(err.Error(), "BUCKET#e#r#0") {
			t.Errorf("%s = %v: %v; want an error about %s", tt.attr, tt.value, err, named)
		}
	}
}

// TestBrokenLeasesAreNamed: leases must be in order, at most 64, and make up with the centre
// the whole bucket.
func TestBrokenLeasesAreNamed(t *testing.T) {
	b := schema.NewBucket(bucketLimits(t, limiter.PerSecond("a", 10)), 1, bucketTime)
	b.Serial, b.Line = 1, schema.Line{Rate: 400, Room: 700, Offset: 5}
	b.Leases = []schema.Lease{{Replica: 1, Rate: 500, Room: 300}, {Replica: 2, Rate: 100}}
	if _, err := schema.ParseBucket("t", bucketKey(b), b.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(b *schema.Bucket){
		"parts of the rate": func(b *schema.Bucket) { b.Line.Rate++ },
		"of the room":       func(b *schema.Bucket) { b.Line.Room-- },
		"must be in order":  func(b *schema.Bucket) { b.Leases[0].Replica = 2 },
		"at most 64":        func(b *schema.Bucket) { b.Leases = append(b.Leases, make([]schema.Lease, 63)...) },
	} {
		broken := *b
		broken.Leases = append([]schema.Lease(nil), b.Leases...)
		spoil(&broken)
		if _, err := schema.ParseBucket("t", bucketKey(b), broken.Attributes(), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParseBucket: no content of an item makes the parser panic, and an accepted item is
// written as it was.
func FuzzParseBucket(f *testing.F) {
	b := schema.NewBucket(bucketLimits(f, limiter.PerSecond("a", 10)), 1, bucketTime)
	b.Serial = 1
	for attr := range b.Attributes() {
		f.Add(attr, "1", true)
	}
	f.Add("ls", "123456789012", false)
	f.Add("lw1", "abcde", false)
	f.Fuzz(func(t *testing.T, attr, value string, number bool) {
		item := b.Attributes()
		item[attr] = &types.AttributeValueMemberB{Value: []byte(value)}
		if number {
			item[attr] = &types.AttributeValueMemberN{Value: value}
		}
		before := maps.Clone(item)
		got, err := schema.ParseBucket("t", bucketKey(b), item, nil)
		if err != nil {
			if _, ok := errors.AsType[*schema.CorruptError](err); !ok {
				t.Fatalf("the error is %T", err)
			}
			return
		}
		if !maps.EqualFunc(before, item, func(x, y types.AttributeValue) bool { return reflect.DeepEqual(x, y) }) {
			t.Fatal("the item was changed")
		}
		if _, err := schema.ParseBucket("t", bucketKey(b), got.Attributes(), nil); err != nil {
			t.Fatalf("written again: %v", err)
		}
	})
}

// TestFiftyHoldersFitAWriteUnit: an item with fifty leases, and ids of charges in half of the
// slots, is within the kilobyte that one write unit pays for. A change of leases drops the ids
// of takes.
func TestFiftyHoldersFitAWriteUnit(t *testing.T) {
	b := schema.NewBucket(bucketLimits(t, limiter.PerSecond("requests", 10_000)), 12, bucketTime)
	b.Serial, b.Taken, b.Line = 1<<20, bucketTime, schema.Line{Offset: 1000 * bucketTime}
	for i := range 50 {
		b.Leases = append(b.Leases, schema.Lease{Replica: uint32(i) << 26, Sequence: 12345, Rate: 20, Room: 20, Demand: 700, Stock: 500, At: 77}) // #nosec G115 -- few
	}
	for i := range schema.SlotCount / 2 {
		b.Booked[i] = schema.NewWriteID(0xdeadbeef, 1<<20)
	}
	item := b.Attributes()
	maps.Copy(item, schema.NewBucketItem("k3x9", limiter.BucketKey{Entity: "user-123456", Resource: "api.requests"}, 0))
	item[schema.AttrUnits], item[schema.LimitAttr("requests", schema.LimitConsumed)] = schema.NumberAttribute(1<<20), schema.NumberAttribute(1<<40)
	size := schema.ItemSize(item)
	t.Logf("%d bytes, %d of them leases", size, len(item[schema.AttrLeases].(*types.AttributeValueMemberB).Value))
	if size > 1024 {
		t.Errorf("the item has %d bytes, want 1024 at most", size)
	}
}

// WriteIDs are all ids that a state shows, and nothing else.
func TestWriteIDs(t *testing.T) {
	b, want := schema.Bucket{}, map[schema.WriteID]bool{}
	for i := range schema.SlotCount {
		for c := range schema.ChannelCount {
			b.Slots[i][c] = schema.NewWriteID(uint32(i+1), uint64(c+1)) // #nosec G115 -- a few
			want[b.Slots[i][c]] = true
		}
		b.Booked[i] = schema.NewWriteID(uint32(i+1), 100) // #nosec G115 -- a few
		want[b.Booked[i]] = true
	}
	b.Slots[2][1], b.Booked[3] = "", ""
	delete(want, schema.NewWriteID(3, 2))
	delete(want, schema.NewWriteID(4, 100))
	for id := range b.WriteIDs() {
		if !want[id] {
			t.Errorf("the id %x is not of the state, or comes twice", id)
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("%d ids are missing", len(want))
	}
}
