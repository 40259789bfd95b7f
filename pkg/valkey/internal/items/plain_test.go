package items_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// anyWrite draws a write as takes are: an id, comparisons, and numbers to set and to add.
func anyWrite(r *rand.Rand) *schema.ItemWrite {
	w := schema.NewUpdate(schema.Key{PK: "p", SK: "plain"})
	number := func() types.AttributeValue { return numberOf(anyNumber(r).String()) }
	w.Require("ep", "=", numberOf(strconv.Itoa(r.IntN(8)/7)))
	for _, name := range []string{"a", "b", "absent", "text"} {
		if op := []string{"<", "<=", ">", ">=", "<>", "", "", ""}[r.IntN(8)]; op != "" {
			w.Require(name, op, number())
		}
	}
	if r.IntN(2) == 0 {
		w.Set("b", number())
	}
	for _, name := range []string{"d", "never"} {
		if r.IntN(2) == 0 {
			w.AddAbove(name, number(), number())
		}
	}
	w.Set("id", &types.AttributeValueMemberB{Value: []byte{byte(r.IntN(256)), 1}})
	for _, name := range []string{"a", "c", "new", schema.AttrSerial} {
		if n := anyNumber(r); r.IntN(3) > 0 || name == schema.AttrSerial {
			w.AddValue(name, numberOf(n.String()))
		}
	}
	return w
}

// comparisonsOf returns the text of the comparisons of a write.
func comparisonsOf(w *schema.ItemWrite) string {
	var all []string
	for _, c := range w.Conditions {
		if n, ok := c.Value.(*types.AttributeValueMemberN); ok {
			all = append(all, c.Attr+" "+c.Operator+" "+n.Value)
		}
	}
	return strings.Join(all, " AND ")
}

// A plain write does what a batch of it does.
func TestPlainWrites(t *testing.T) {
	s := open(t, valkeytest.Start(t))
	r := rand.New(rand.NewPCG(5, 6))
	applied := 0
	for i := range 2000 {
		plain := anyWrite(r)
		batch := *plain
		batch.Key.SK, batch.Conditions = "batch", slices.Clone(plain.Conditions)
		batch.RequirePresent(schema.AttrPK) // no plain write has it
		if i%50 == 0 {
			for _, sk := range []string{"plain", "batch"} {
				it := itemKey(sk)
				for name, n := range map[string]string{"a": "1", "b": "-5", "c": strings.Repeat("9", 20), "ep": "0", schema.AttrSerial: "1"} {
					it[name] = numberOf(n)
				}
				it["text"] = textOf("x")
				if _, err := s.Write(t.Context(), schema.NewPut(it)); err != nil {
					t.Fatal(err)
				}
			}
		}
		one, oneErr := s.Write(t.Context(), plain)
		other, otherErr := s.Write(t.Context(), &batch)
		was, refused := awsdb.ConditionItem(oneErr)
		were, alsoRefused := awsdb.ConditionItem(otherErr)
		if refused != alsoRefused || !refused && (oneErr != nil || otherErr != nil) {
			t.Fatalf("%d: %v and %v", i, oneErr, otherErr)
		}
		if !refused {
			applied++
			was, were = one, other
		}
		same := cmpopts.IgnoreMapEntries(func(name string, _ types.AttributeValue) bool { return name == "SK" })
		if diff := cmp.Diff(were, was, same, cmpopts.IgnoreUnexported(types.AttributeValueMemberN{}, types.AttributeValueMemberS{}, types.AttributeValueMemberB{})); diff != "" {
			t.Fatalf("%d: %s (-batch +plain):\n%s", i, comparisonsOf(plain), diff)
		}
	}
	if applied < 200 {
		t.Errorf("%d writes were applied", applied)
	}
}

// A write whose sender knows the item is answered without it, and another one with it.
func TestPlainWriteOfAKnownItem(t *testing.T) {
	s := open(t, valkeytest.Start(t))
	it := itemKey("s")
	it["ep"], it[schema.AttrSerial] = numberOf("0"), numberOf("7")
	if _, err := s.Write(t.Context(), schema.NewPut(it)); err != nil {
		t.Fatal(err)
	}
	write := func(known int64) (image map[string]types.AttributeValue) {
		w := schema.NewUpdate(schema.Key{PK: "p", SK: "s"})
		w.Require("ep", "=", numberOf("0"))
		w.Set("id", &types.AttributeValueMemberB{Value: []byte("x")})
		w.Add(schema.AttrSerial, 1)
		w.Known = known
		image, err := s.Write(t.Context(), w)
		if err = awsdb.CheckReply(w, image, err); err != nil {
			t.Fatal(err)
		}
		return image
	}
	if image := write(7); len(image) > 0 {
		t.Errorf("a write on the item that its sender knows is answered with %v", image)
	}
	if image := write(7); image["PK"] == nil || image["id"] == nil {
		t.Errorf("a write on another item is answered with %v, want the item", image)
	}
}

// A sum above a floor is right for all numbers, by both scripts, and of a number that is not there.
func TestAddAbove(t *testing.T) {
	s := open(t, valkeytest.Start(t))
	r := rand.New(rand.NewPCG(7, 8))
	key := schema.Key{PK: "p", SK: "s"}
	for i := range 500 {
		it, x, floor, n := itemKey("s"), anyNumber(r), anyNumber(r), anyNumber(r)
		if r.IntN(4) == 0 {
			x = floor
		}
		it["ep"], it[schema.AttrSerial], it["x"] = numberOf("0"), numberOf("1"), numberOf(x.String())
		if _, err := s.Write(t.Context(), schema.NewPut(it)); err != nil {
			t.Fatal(err)
		}
		w := schema.NewUpdate(key)
		w.Require("ep", "=", numberOf("0"))
		w.Set("id", &types.AttributeValueMemberB{Value: []byte{byte(i), byte(i >> 8)}})
		w.Add(schema.AttrSerial, 1)
		w.AddAbove("x", numberOf(floor.String()), numberOf(n.String()))
		w.AddAbove("new", numberOf(floor.String()), numberOf(n.String()))
		if i%2 == 0 {
			w.RequirePresent("x") // no plain write has it
		}
		got, err := s.Write(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		above := floor
		if x.Cmp(floor) > 0 {
			above = x
		}
		for name, from := range map[string]*big.Int{"x": above, "new": floor} {
			want := new(big.Int).Add(from, n)
			if v, ok := got[name].(*types.AttributeValueMemberN); !ok || v.Value != want.String() {
				t.Errorf("%d: %s of %s and the floor %s, with %s, is %v, want %s", i, name, x, floor, n, got[name], want)
			}
		}
	}
}

// A put with an update for an item that is there makes one, changes that, or does neither.
func TestPutOrUpdate(t *testing.T) {
	s := open(t, valkeytest.Start(t))
	put := func(n string) (map[string]types.AttributeValue, error) {
		it := itemKey("s")
		it["v"], it["text"] = numberOf("1"), textOf("x")
		w := schema.PutNew(it)
		w.OrUpdate = schema.NewUpdate(w.Key)
		w.OrUpdate.Require("v", "<=", numberOf("10"))
		w.OrUpdate.RequireAbsent("other")
		w.OrUpdate.AddAbove("v", numberOf("4"), numberOf(n))
		image, err := s.Write(t.Context(), w)
		return image, awsdb.CheckReply(w, image, err)
	}
	if image, err := put("1"); err != nil || image != nil {
		t.Fatalf("a put of a new item: %v, %v", image, err)
	}
	image, err := put("7")
	if v, ok := image["v"].(*types.AttributeValueMemberN); err != nil || !ok || v.Value != "11" || image["text"] == nil {
		t.Fatalf("an update of the item: %v, %v; want 11", image, err)
	}
	_, err = put("1")
	if found, refused := awsdb.ConditionItem(err); !refused || found["text"] == nil {
		t.Errorf("an update that does not fit: %v, %v; want a refusal with the item", found, err)
	}
}
