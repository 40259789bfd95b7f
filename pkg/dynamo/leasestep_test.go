package dynamo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// tenant is a replica that takes leases.
type tenant struct {
	*member
	name   string
	bucket limiter.BucketKey
	asked  int
}

func (w *scene) tenant(limits ...limiter.Limit) *tenant {
	w.t.Helper()
	m := w.member(limits...)
	return &tenant{member: m, name: fmt.Sprintf("R%d", m.id), bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}
}

// asks returns a step that grants so many millitokens of the limits, in their order.
func (x *tenant) asks(grants ...int64) leaseAsk {
	x.asked++
	return leaseAsk{replica: x.name, id: strconv.FormatInt(int64(x.asked), 36), forced: true, size: func(left []amount) []amount {
		wanted := slices.Clone(left)
		for i := range wanted {
			if wanted[i].tokens = 0; i < len(grants) {
				wanted[i].tokens = grants[i]
			}
		}
		return wanted
	}}
}

// holds adds to a step what becomes of the lease that the newest view has.
func (x *tenant) holds(ask leaseAsk, spent, back []amount) leaseAsk {
	x.t.Helper()
	h := x.knows.view.holding(x.name)
	if h == nil {
		x.t.Fatalf("%s has no lease", x.name)
	}
	ask.own = &ownLease{text: h.text, spent: spent, back: back}
	return ask
}

// of returns amounts of limit a.
func of(n int64) []amount { return []amount{{"a", n}} }

// intend plans what is asked of leases, and a request if there are spends, for the
// newest view; it must lead to a write.
func (x *tenant) intend(at float64, ask leaseAsk, spends ...limiter.Spend) *planned {
	x.t.Helper()
	if ask.replica != "" {
		ask.now = milliseconds(at)
	}
	x.knows.lease = ask
	var pending []*request
	if len(spends) > 0 {
		r, err := newRequest(milliseconds(at), &limiter.Op{Bucket: x.bucket, Limits: x.limits, Generation: 1, Spends: spends})
		if err != nil {
			x.t.Fatal(err)
		}
		pending = append(pending, r)
	}
	p := x.knows.plan(pending)
	x.knows.lease = leaseAsk{}
	if p.stage == nil {
		x.t.Fatalf("%s would not write for %+v and %+v", x.name, spends, ask)
	}
	x.writes++
	return &planned{x.member, p, newWrite(x.table, x.key, writeID{x.id % schema.SlotCount, x.name + ":" + strconv.FormatInt(int64(x.writes), 36)}, &p)}
}

// must has the replica see the item, and write.
func (x *tenant) must(at float64, ask leaseAsk, spends ...limiter.Spend) *planned {
	x.t.Helper()
	p := x.intend(at, ask, spends...)
	if !p.send() {
		x.t.Fatalf("%s: what rests on the item as it is was refused:\n%s", x.name, spelled(p.write.update))
	}
	x.look()
	return p
}

// placeholder is one of a name or a value.
var placeholder = regexp.MustCompile(`[#:][0-9]+`) //nolint:gochecknoglobals // a constant

// spelled is an update with its names and values in place; times are as long after
// the beginning of a scene, in ms, or in s.
func spelled(in *dynamodb.UpdateItemInput) string {
	return placeholder.ReplaceAllStringFunc(*in.ConditionExpression+"\n"+*in.UpdateExpression, func(p string) string {
		switch v := in.ExpressionAttributeValues[p].(type) {
		case *types.AttributeValueMemberN:
			n, err := strconv.ParseInt(v.Value, 10, 64)
			switch {
			case err == nil && n >= simStart && n < 2*simStart:
				return fmt.Sprintf("@%dms", n-simStart)
			case err == nil && n >= simStart/1000 && n < simStart/500:
				return fmt.Sprintf("@%ds", n-simStart/1000)
			}
			return v.Value
		case *types.AttributeValueMemberS:
			return "'" + v.Value + "'"
		}
		return in.ExpressionAttributeNames[p]
	})
}

// Every kind of step, as it is written, and what it leaves of limit a: 10 tokens, and
// one more a second. R1 is the one that writes; R2 has 2 of the 5 tokens from the start.
func TestLeaseWrites(t *testing.T) {
	for _, tc := range []struct {
		name   string
		write  func(x *tenant) *planned
		want   []string // condition, update
		tokens int64
		leased int64
		leases []string
	}{
		{
			name:  "a first grant",
			write: func(x *tenant) *planned { return x.intend(1, x.asks(2000), take(1)) },
			want: []string{
				"lw1<>'R1:2' AND ttl>=@3611s AND rf=@0ms AND b_a_tk>=2000 AND b_a_tk<7000 AND b_a_h=2000 AND attribute_not_exists(ls_R1)",
				"SET lw1='R1:2', lt=@1000ms, rf=@1000ms, ls_R1='1 a=1jk' ADD b_a_tk -2000, b_a_tc 1000, b_a_h 2000",
			},
			tokens: 1000, leased: 4000, leases: []string{"R1 1 a=1jk", "R2 1 a=1jk"},
		},
		{
			name:  "a grant of a full limit",
			write: func(x *tenant) *planned { return x.intend(100, x.asks(3000), take(1)) },
			want: []string{
				"lw1<>'R1:2' AND ttl>=@3710s AND rf=@0ms AND b_a_tk>=-92000 AND b_a_h=2000 AND attribute_not_exists(ls_R1)",
				"SET lw1='R1:2', lt=@100000ms, rf=@100000ms, b_a_tk=6000-b_a_h, ls_R1='1 a=2bc' ADD b_a_tc 1000, b_a_h 3000",
			},
			tokens: 4000, leased: 5000, leases: []string{"R1 1 a=2bc", "R2 1 a=1jk"},
		},
		{
			name:  "a grant of more than is left",
			write: func(x *tenant) *planned { return x.intend(1, x.asks(99_000), take(1)) },
			want: []string{
				"lw1<>'R1:2' AND ttl>=@3611s AND rf=@0ms AND b_a_tk>=3000 AND b_a_tk<7000 AND b_a_h=2000 AND attribute_not_exists(ls_R1)",
				"SET lw1='R1:2', lt=@1000ms, rf=@1000ms, ls_R1='1 a=2bc' ADD b_a_tk -3000, b_a_tc 1000, b_a_h 3000",
			},
			tokens: 0, leased: 5000, leases: []string{"R1 1 a=2bc", "R2 1 a=1jk"},
		},
		{
			name: "a report and more, while the holder serves on",
			write: func(x *tenant) *planned {
				x.must(0, x.asks(2000))
				return x.intend(1, x.holds(x.asks(500), of(1500), nil))
			},
			want: []string{
				"lw1<>'R1:3' AND ttl>=@3611s AND rf=@0ms AND b_a_tk>=-500 AND b_a_tk<5000 AND b_a_h=4000 AND ls_R1='1 a=1jk'",
				"SET lw1='R1:3', lt=@1000ms, rf=@1000ms, ls_R1='2 a=rs' ADD b_a_tk 500, b_a_tc 1500, b_a_h -1000",
			},
			tokens: 1500, leased: 3000, leases: []string{"R1 2 a=rs", "R2 1 a=1jk"},
		},
		{
			name: "a report to a full limit",
			write: func(x *tenant) *planned {
				x.must(0, x.asks(2000))
				return x.intend(100, x.holds(x.asks(0), of(1500), nil), take(1))
			},
			want: []string{
				"lw1<>'R1:3' AND ttl>=@3710s AND rf=@0ms AND b_a_tk>=-94000 AND b_a_h=4000 AND ls_R1='1 a=1jk'",
				"SET lw1='R1:3', lt=@100000ms, rf=@100000ms, b_a_tk=9000-b_a_h, ls_R1='2 a=dw' ADD b_a_tc 2500, b_a_h -1500",
			},
			tokens: 5000, leased: 2500, leases: []string{"R1 2 a=dw", "R2 1 a=1jk"},
		},
		{
			name: "a return",
			write: func(x *tenant) *planned {
				x.must(0, x.asks(2000))
				return x.intend(0, x.holds(x.asks(), of(500), of(1500)))
			},
			want: []string{
				"lw1<>'R1:3' AND ttl>=@3610s AND rf=@0ms AND b_a_tk<6000 AND b_a_h=4000 AND ls_R1='1 a=1jk'",
				"SET lw1='R1:3', lt=@0ms ADD b_a_tk 1500, b_a_tc 500, b_a_h -2000 REMOVE ls_R1",
			},
			tokens: 2500, leased: 2000, leases: []string{"R2 1 a=1jk"},
		},
		{
			name: "a return to a full limit, for a request that is larger than what is stored, and a new grant",
			write: func(x *tenant) *planned {
				x.must(0, x.asks(2000))
				return x.intend(100, x.holds(x.asks(250), of(500), of(1500)), take(7))
			},
			want: []string{
				"lw1<>'R1:3' AND ttl>=@3710s AND rf=@0ms AND b_a_tk>=-94000 AND b_a_h=4000 AND ls_R1='1 a=1jk'",
				"SET lw1='R1:3', lt=@100000ms, rf=@100000ms, b_a_tk=4250-b_a_h, ls_R1='2 a=6y' ADD b_a_tc 7500, b_a_h -1750",
			},
			tokens: 250, leased: 2250, leases: []string{"R1 2 a=6y", "R2 1 a=1jk"},
		},
		{
			name: "a dead holder",
			write: func(x *tenant) *planned {
				ask := x.asks()
				ask.dead = x.knows.view.leases
				return x.intend(1, ask)
			},
			want: []string{
				"lw1<>'R1:2' AND ttl>=@3611s AND rf=@0ms AND b_a_tk<7000 AND b_a_h=2000 AND ls_R2='1 a=1jk'",
				"SET lw1='R1:2', rf=@1000ms ADD b_a_tk 1000, b_a_h -2000 REMOVE ls_R2",
			},
			tokens: 4000, leased: 0, leases: []string{},
		},
		{
			name: "a dead holder, in a write that refills anyway",
			write: func(x *tenant) *planned {
				ask := x.asks(500)
				ask.dead, ask.forced = x.knows.view.leases, false
				return x.intend(1, ask, take(3.5))
			},
			want: []string{
				"lw1<>'R1:2' AND ttl>=@3611s AND rf=@0ms AND b_a_tk>=3000 AND b_a_tk<7000 AND b_a_h=2000 AND ls_R2='1 a=1jk' AND attribute_not_exists(ls_R1)",
				"SET lw1='R1:2', lt=@1000ms, rf=@1000ms, ls_R1='1 a=dw' ADD b_a_tk -3000, b_a_tc 3500, b_a_h -1500 REMOVE ls_R2",
			},
			tokens: 0, leased: 500, leases: []string{"R1 1 a=dw"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newScene(t)
			x, other := w.tenant(aSecond), w.tenant(aSecond)
			if p := x.intend(0, leaseAsk{}, take(5)); !p.send() {
				t.Fatal("refused")
			}
			other.look()
			other.must(0, other.asks(2000))
			x.look()
			p := tc.write(x)
			under := fmt.Sprintf("cv=%d AND ep=@0ms AND ", x.limits.Hash())

			if diff := cmp.Diff(strings.Join(tc.want, "\n"), strings.Replace(spelled(p.write.update), under, "", 1)); diff != "" {
				t.Errorf("the write (-want +got):\n%s", diff)
			}
			if !p.send() {
				t.Fatal("refused")
			}
			v := w.item()
			b := v.find("a")
			leases := make([]string, len(v.leases))
			for i := range v.leases {
				leases[i] = v.leases[i].replica + " " + v.leases[i].text
			}
			if b.state.Tokens != tc.tokens || b.leased != tc.leased || !slices.Equal(leases, tc.leases) {
				t.Errorf("left %d tokens, %d on lease, %q; want %d, %d, %q", b.state.Tokens, b.leased, leases, tc.tokens, tc.leased, tc.leases)
			}
			if p.send() {
				t.Error("applied again")
			}
		})
	}
}

// DynamoDB takes the writes that change leases: of a full limit and of others, of one
// that is dormant, with slots that come and go.
func TestLeaseWritesOnDynamoDBLocal(t *testing.T) {
	client, table := dynamotest.Start(t).Client(t), dynamotest.TableName(t)
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	w := &scene{t: t, db: client, table: table, key: schema.BucketKey("ns", "e", "r", 0, 0)}
	x, y, other := w.tenant(aSecond), w.tenant(aSecond), w.member(limiter.PerDay("b", 7))
	w.member(aSecond).do(0, take(5))
	left := func(at, want float64, holders int) {
		t.Helper()
		if v := w.item(); w.balance(at) != want || len(v.leases) != holders {
			t.Errorf("at %v s: %v tokens, leases %+v; want %v and %d", at, w.balance(at), v.leases, want, holders)
		}
	}
	x.look()
	x.must(0, x.asks(2000))
	left(0, 5, 1)
	y.look()
	y.must(1, y.asks(1000), take(1))
	left(1, 5, 2)
	x.look()
	x.must(100, x.holds(x.asks(500), of(1500), nil), take(1)) // full: 7 and 3 on lease
	left(100, 7.5, 2)
	y.look()
	ask := y.holds(y.asks(), of(250), of(750))
	ask.dead = []holding{*y.knows.view.holding(x.name)}
	y.must(101, ask)
	left(101, 7.25, 0)
	x.look()
	x.must(101, x.asks(4000))
	other.look()
	if !other.intend(102, 2, limiter.Spend{Limit: "b", Take: 1000}).send() {
		t.Fatal("the change was refused")
	}
	x.limits = other.limits
	x.look()
	x.must(103, x.holds(x.asks(1000), of(1000), of(3000)))
	if a, b := w.item().any("a"), w.item().find("b"); a.state.Tokens != 8250 || a.leased != 0 || b.leased != 1000 {
		t.Errorf("left %+v and %+v", a, b)
	}
}
