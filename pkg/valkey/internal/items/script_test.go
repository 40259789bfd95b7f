package items_test

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// open returns the calls on a new table of a server.
func open(t *testing.T, server *valkeytest.Server) *items.Session {
	t.Helper()
	return openDB(t, server, "", time.Now).Session()
}

// openDB returns a new table of a server. The password of a user is pw; "" = none is needed.
func openDB(t *testing.T, server *valkeytest.Server, user string, now func() time.Time) *items.DB {
	t.Helper()
	options := rueidis.ClientOption{InitAddress: []string{server.Address}, DisableCache: true, DisableRetry: true, ForceSingleClient: true}
	if user != "" {
		options.Username, options.Password = user, "pw"
	}
	db, err := items.Open(t.Context(), items.Config{
		Name: "t", Now: now, Connect: func(context.Context, []int, *items.Servers, string) (*items.Servers, error) {
			client, err := rueidis.NewClient(options)
			return &items.Servers{Clients: []rueidis.Client{client}}, err
		},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func textOf(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func numberOf(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func itemKey(sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"PK": textOf("p"), "SK": textOf(sk)}
}

// anyNumber draws a number of up to 60 digits, with many zeros and nines.
func anyNumber(r *rand.Rand) *big.Int {
	var b strings.Builder
	for range r.IntN(60) + 1 {
		b.WriteByte("0123456789999900000"[r.IntN(19)])
	}
	n, _ := new(big.Int).SetString(b.String(), 10)
	if r.IntN(2) == 0 {
		n.Neg(n)
	}
	return n
}

// Numbers of any length are added, subtracted and compared as integers are.
func TestNumbers(t *testing.T) {
	s := open(t, valkeytest.Start(t))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		x, y := anyNumber(r), anyNumber(r)
		switch r.IntN(4) {
		case 0:
			y = new(big.Int).Add(x, big.NewInt(int64(r.IntN(3)-1)))
		case 1:
			y = new(big.Int).Add(new(big.Int).Neg(x), big.NewInt(int64(r.IntN(3)-1)))
		}
		if _, err := s.Write(t.Context(), schema.NewPut(map[string]types.AttributeValue{
			"PK": textOf("p"), "SK": textOf("s"), "a": numberOf(x.String()), "b": numberOf(x.String()), "c": numberOf(y.String()), "n": numberOf("1"),
		})); err != nil {
			t.Fatal(err)
		}
		sums := schema.NewUpdate(schema.Key{PK: "p", SK: "s"})
		sums.AddValue("b", numberOf(y.String()))
		sums.AddValue("c", numberOf(new(big.Int).Neg(x).String()))
		sums.AddValue("d", numberOf(y.String()))
		image, err := s.Write(t.Context(), sums)
		if err != nil {
			t.Fatalf("%d: %s %s: %v", i, x, y, err)
		}
		for name, want := range map[string]*big.Int{"a": x, "b": new(big.Int).Add(x, y), "c": new(big.Int).Sub(y, x), "d": y} {
			if got, _ := image[name].(*types.AttributeValueMemberN); got == nil || got.Value != want.String() {
				t.Fatalf("%d: x=%s y=%s: %s is %v, want %s", i, x, y, name, image[name], want)
			}
		}
		for op, want := range map[string]bool{"<": x.Cmp(y) < 0, "<=": x.Cmp(y) <= 0, ">": x.Cmp(y) > 0, ">=": x.Cmp(y) >= 0, "=": x.Cmp(y) == 0, "<>": x.Cmp(y) != 0} {
			compared := schema.NewUpdate(schema.Key{PK: "p", SK: "s"})
			compared.Answer, compared.Shows = schema.AnswerNothing, false
			compared.Require("a", op, numberOf(y.String()))
			compared.Set("e", numberOf(y.String()))
			_, err := s.Write(t.Context(), compared)
			_, refused := awsdb.ConditionItem(err)
			if err != nil && !refused || refused == want {
				t.Fatalf("%d: %s %s %s: %v, want %t", i, x, op, y, err, want)
			}
		}
	}
}

// A new item has its numbers in front of its texts, since takes read and change numbers.
func TestNewItemHasItsNumbersInFront(t *testing.T) {
	server := valkeytest.Start(t)
	s := open(t, server)
	for range 10 { // attributes come in any order
		it := itemKey("s")
		for _, name := range []string{"a", "b", "c"} {
			it[name], it["text_"+name] = numberOf("1"), textOf("x")
		}
		if _, err := s.Write(t.Context(), schema.NewPut(it)); err != nil {
			t.Fatal(err)
		}
		names := strings.Fields(server.Must("EVAL", "return table.concat(redis.call('HKEYS', KEYS[1]), ' ')", "1", "{t}:i:p\x00s"))
		if slices.Sort(names[:3]); !slices.Equal(names[:3], []string{"a", "b", "c"}) {
			t.Fatalf("the item has %q in this order, want its numbers first", names)
		}
	}
}
