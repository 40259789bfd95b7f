package items_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// anyWrite draws a write as takes are: an id, comparisons, and numbers to set and to add.
func anyWrite(r *rand.Rand) *dynamodb.UpdateItemInput {
	e := schema.NewExpression()
	number := func() types.AttributeValue { return numberOf(anyNumber(r).String()) }
	e.Require("ep", "=", numberOf(strconv.Itoa(r.IntN(8)/7)))
	for _, name := range []string{"a", "b", "absent", "text"} {
		if op := []string{"<", "<=", ">", ">=", "<>", "", "", ""}[r.IntN(8)]; op != "" {
			e.Require(name, op, number())
		}
	}
	if r.IntN(2) == 0 {
		e.Set("b", number())
	}
	e.Set("id", &types.AttributeValueMemberB{Value: []byte{byte(r.IntN(256)), 1}})
	for _, name := range []string{"a", "c", "new", schema.AttrSerial} {
		if n := anyNumber(r); r.IntN(3) > 0 || name == schema.AttrSerial {
			e.AddValue(name, numberOf(n.String()))
		}
	}
	return e.Input("t", schema.Key{PK: "p", SK: "plain"})
}

// A plain write does what a batch of it does.
func TestPlainWrites(t *testing.T) {
	s := open(t, valkeytest.Start(t))
	r := rand.New(rand.NewPCG(5, 6))
	applied := 0
	for i := range 2000 {
		plain := anyWrite(r)
		batch := *plain
		batch.Key = itemKey("batch")
		batch.ConditionExpression = aws.String(aws.ToString(plain.ConditionExpression) + " AND attribute_exists(#k)") // no plain write has it
		batch.ExpressionAttributeNames = map[string]string{"#k": "PK"}
		maps.Copy(batch.ExpressionAttributeNames, plain.ExpressionAttributeNames)
		if i%50 == 0 {
			for _, sk := range []string{"plain", "batch"} {
				it := itemKey(sk)
				for name, n := range map[string]string{"a": "1", "b": "-5", "c": strings.Repeat("9", 20), "ep": "0", schema.AttrSerial: "1"} {
					it[name] = numberOf(n)
				}
				it["text"] = textOf("x")
				if _, err := s.PutItem(t.Context(), &dynamodb.PutItemInput{Item: it}); err != nil {
					t.Fatal(err)
				}
			}
		}
		one, oneErr := s.UpdateItem(t.Context(), plain)
		other, otherErr := s.UpdateItem(t.Context(), &batch)
		was, refused := awsdb.ConditionItem(oneErr)
		were, alsoRefused := awsdb.ConditionItem(otherErr)
		if refused != alsoRefused || !refused && (oneErr != nil || otherErr != nil) {
			t.Fatalf("%d: %v and %v", i, oneErr, otherErr)
		}
		if !refused {
			applied++
			was, were = one.Attributes, other.Attributes
		}
		same := cmpopts.IgnoreMapEntries(func(name string, _ types.AttributeValue) bool { return name == "SK" })
		if diff := cmp.Diff(were, was, same, cmpopts.IgnoreUnexported(types.AttributeValueMemberN{}, types.AttributeValueMemberS{}, types.AttributeValueMemberB{})); diff != "" {
			t.Fatalf("%d: %s (-batch +plain):\n%s", i, aws.ToString(plain.ConditionExpression), diff)
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
	if _, err := s.PutItem(t.Context(), &dynamodb.PutItemInput{Item: it}); err != nil {
		t.Fatal(err)
	}
	write := func(known int64) *dynamodb.UpdateItemOutput {
		e := schema.NewExpression()
		e.Require("ep", "=", numberOf("0"))
		e.Set("id", &types.AttributeValueMemberB{Value: []byte("x")})
		e.Add(schema.AttrSerial, 1)
		in := e.Input("t", schema.Key{PK: "p", SK: "s"})
		in.ReturnValues = awsdb.ChangesSince(known)
		out, err := s.UpdateItem(t.Context(), in)
		if err = awsdb.CheckReply(in, out, err); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := write(7); len(out.Attributes) > 0 {
		t.Errorf("a write on the item that its sender knows is answered with %v", out.Attributes)
	}
	if out := write(7); out.Attributes["PK"] == nil || out.Attributes["id"] == nil {
		t.Errorf("a write on another item is answered with %v, want the item", out.Attributes)
	}
}
