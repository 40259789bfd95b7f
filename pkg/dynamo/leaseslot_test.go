package dynamo

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// What is written is read as it was, and no two leases of a replica have one text.
func TestHoldingsAreOneToOne(t *testing.T) {
	draw := func(t *rapid.T, label string) holding {
		amounts := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) amount {
			return amount{
				rapid.StringMatching(`[A-Za-z][A-Za-z0-9_.-]{0,63}`).Draw(t, "limit"),
				rapid.Int64Range(1, tokenbucket.MaxCapacity).Draw(t, "millitokens"),
			}
		}), 1, limiter.MaxLimits, func(a amount) string { return a.limit }).Draw(t, label)
		replica := rapid.StringN(1, 40, -1).Draw(t, "replica")
		return newHolding(replica, rapid.StringMatching(`[^ ]+`).Draw(t, "id"), amounts)
	}
	rapid.Check(t, func(t *rapid.T) {
		one, other := draw(t, "one"), draw(t, "other")
		got, ok := parseHolding(one.replica, one.text)
		if diff := cmp.Diff(one, got, cmp.AllowUnexported(holding{}, amount{})); !ok || diff != "" {
			t.Fatalf("%q is read as (-want +got):\n%s", one.text, diff)
		}
		other.replica = one.replica
		if same := cmp.Equal(one, other, cmp.AllowUnexported(holding{}, amount{})); same != (one.text == other.text) {
			t.Fatalf("%+v and %+v: the same: %t, of the same text: %t", one, other, same, one.text == other.text)
		}
	})
}

func TestBadHoldings(t *testing.T) {
	for _, text := range []string{
		"", " ", "7", "7 ", " a=1", "7 a", "7 a=", "7 =1", "7 a=0", "7 a=-1", "7 a=+1", "7 a=01", "7 a=A", "7 a=1 ", "7  a=1", "7 a=1  b=1",
		"7 b=1 a=1", "7 a=1 a=1", "7 a=1=1", "7 a=1.5", "7 a=zzzzzzzzzzzzzz",
	} {
		if h, ok := parseHolding("r", text); ok {
			t.Errorf("%q is read as %+v", text, h)
		}
	}
	if h, ok := parseHolding("", "7 a=1"); ok {
		t.Errorf("a lease of nobody is read as %+v", h)
	}
}

func FuzzHolding(f *testing.F) {
	for _, text := range []string{"1 a=1", "zz a-b=zz tpm.x_=1y0", "1 a=0", "a=1 a=1", "1 b=1 a=2", "\xff \xff=1"} {
		f.Add("r", text)
	}
	f.Fuzz(func(t *testing.T, replica, text string) {
		h, ok := parseHolding(replica, text)
		if !ok {
			return
		}
		if again := newHolding(replica, h.id, h.amounts); again.text != text || len(h.amounts) == 0 {
			t.Errorf("%q is read as %+v, which is written as %q", text, h, again.text)
		}
		for _, a := range h.amounts {
			if a.tokens <= 0 || a.tokens > tokenbucket.MaxCapacity {
				t.Errorf("%q holds %d of %q", text, a.tokens, a.limit)
			}
		}
	})
}

// setRaw puts attributes on the item, whatever they mean.
func (w *scene) setRaw(attributes map[string]types.AttributeValue) {
	w.t.Helper()
	item, err := w.rawItem()
	if err != nil {
		w.t.Fatal(err)
	}
	maps.Copy(item, attributes)
	if _, err := w.db.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(w.table), Item: item}); err != nil {
		w.t.Fatal(err)
	}
}

// An item whose leases make no sense is an error that says where it is wrong.
func TestItemsWithBadLeases(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for _, tc := range []struct {
		name, attribute, problem string
		attributes               map[string]types.AttributeValue
	}{
		{"good", "", "", map[string]types.AttributeValue{"ls_r": text("1 a=rs"), "b_a_h": schema.NumberAttribute(1000)}},
		{"more out than the slots say, of which a later version may tell", "", "", map[string]types.AttributeValue{"ls_r": text("1 a=rs"), "b_a_h": schema.NumberAttribute(1001)}},
		{"a number", "ls_r", "must be a string", map[string]types.AttributeValue{"ls_r": schema.NumberAttribute(1)}},
		{"no text of a slot", "ls_r", "in order of the limits", map[string]types.AttributeValue{"ls_r": text("1 a=RS"), "b_a_h": schema.NumberAttribute(1000)}},
		{"of nobody", "ls_", "in order of the limits", map[string]types.AttributeValue{"ls_": text("1 a=rs"), "b_a_h": schema.NumberAttribute(1000)}},
		{"of a limit besides that was forgotten", "", "", map[string]types.AttributeValue{"ls_r": text("1 a=rs x=rs"), "b_a_h": schema.NumberAttribute(1000)}},
		{"nothing is out", "b_a_h", "at least 1000", map[string]types.AttributeValue{"ls_r": text("1 a=rs")}},
		{"more than is out", "b_a_h", "at least 2000", map[string]types.AttributeValue{"ls_r": text("1 a=rs"), "ls_s": text("1 a=rs"), "b_a_h": schema.NumberAttribute(1999)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newScene(t)
			w.member(aSecond).do(0, take(1))
			w.setRaw(tc.attributes)
			raw, err := w.rawItem()
			if err != nil {
				t.Fatal(err)
			}
			v, err := parseItem(w.table, w.key, raw, nil)
			if tc.attribute == "" {
				if err != nil || len(v.leases) != 1 || v.holding("r").of("a") != 1000 || v.holding("s") != nil {
					t.Errorf("got %+v, %v; want a lease of 1000 of r", v, err)
				}
				return
			}
			if corrupt, ok := errors.AsType[*CorruptError](err); !ok || corrupt.Attribute != tc.attribute || !strings.Contains(corrupt.Problem, tc.problem) {
				t.Errorf("got %v; want one of %s that says %q", err, tc.attribute, tc.problem)
			}
		})
	}
}

// storedSize counts an item as DynamoDB does: names and strings by their bytes, a
// number by a byte for each two significant digits and one more, and one for a sign.
func storedSize(item map[string]types.AttributeValue) int {
	n := 0
	for name, value := range item {
		n += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			digits := strings.TrimRight(strings.TrimLeft(v.Value, "-0"), "0")
			n += (len(digits)+1)/2 + 1 + strings.Count(v.Value, "-")
		}
	}
	return n
}

// Four limits, ids of 32 bytes, all slots and three leases stay in one write unit.
func TestLeasedItemsAreOneWriteUnit(t *testing.T) {
	w := newScene(t)
	key, model := "key/"+strings.Repeat("k", 28), strings.Repeat("m", 32)
	w.key = schema.BucketKey("nsid1234", key, model, 0, 0)
	limits := []limiter.Limit{limiter.PerSecond("rps", 100), limiter.PerMinute("rpm", 1000), limiter.PerMinute("tpm", 400_000), limiter.PerDay("tpd", 10_000_000)}
	spends := []limiter.Spend{{Limit: "rps", Take: 1000}, {Limit: "rpm", Take: 1000}, {Limit: "tpm", Take: 1_234_567}, {Limit: "tpd", Take: 1_234_567}}
	for i := range schema.SlotCount {
		x := w.tenant(limits...)
		x.name, x.bucket = fmt.Sprintf("RUN%06d", i), limiter.BucketKey{Entity: key, Resource: model}
		x.writes, x.asked = 50_000_000, 1_000_000 // of long runs
		x.look()
		if p := x.intend(float64(i)+0.123, leaseAsk{}, spends...); !p.send() {
			t.Fatal("refused")
		}
		if i >= schema.SlotCount-3 {
			x.look()
			if p := x.intend(float64(i)+0.456, x.asks(10_001, 100_001, 9_000_001, 9_000_001), spends...); !p.send() {
				t.Fatal("refused")
			}
		}
	}
	raw, err := w.rawItem()
	if err != nil {
		t.Fatal(err)
	}
	v := w.item()
	if len(v.leases) != 3 || v.find("tpm").leased == 0 {
		t.Fatalf("%+v, want three leases", v.leases)
	}
	if got := storedSize(raw); got >= 1024 || v.size != got {
		t.Errorf("%d bytes, taken for %d; want below 1024", got, v.size)
	}
}

// An item of one limit or two that has all the holders it may have is of two write units.
func TestItemsOfManyHoldersAreTwoWriteUnits(t *testing.T) {
	for limits, most := range []int{0, 1536, 2048} {
		if limits == 0 {
			continue
		}
		w := newScene(t)
		key, model := "key/"+strings.Repeat("k", 28), strings.Repeat("m", 32)
		w.key = schema.BucketKey("nsid1234", key, model, 0, 0)
		set := []limiter.Limit{limiter.PerMinute("rpm", 1_000_000), limiter.PerMinute("tpm", 900_000_000)}[:limits]
		spends := []limiter.Spend{{Limit: "rpm", Take: 1000}, {Limit: "tpm", Take: 1_234_567}}[:limits]
		sizes := make([]int, 0, maxHolders)
		for i := range maxHolders {
			x := w.tenant(set...)
			x.name, x.bucket = fmt.Sprintf("RUN%06d", i), limiter.BucketKey{Entity: key, Resource: model}
			x.writes, x.asked = 50_000_000, 1_000_000 // of long runs
			x.look()
			if p := x.intend(float64(i)+0.123, leaseAsk{}, spends...); !p.send() {
				t.Fatal("refused")
			}
			x.look()
			if p := x.intend(float64(i)+0.456, x.asks([]int64{1_000_001, 9_000_001}[:limits]...), spends...); !p.send() {
				t.Fatal("refused")
			}
			sizes = append(sizes, w.item().size)
		}
		t.Logf("bytes with %d limits, by holders: %v", limits, sizes)
		if len(w.item().leases) != maxHolders || sizes[maxHolders-1] > most {
			t.Errorf("%d holders of %d limits: %d bytes, want at most %d", len(w.item().leases), limits, sizes[maxHolders-1], most)
		}
	}
}
