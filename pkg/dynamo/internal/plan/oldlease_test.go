package plan_test

import (
	"context"
	"maps"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// putLeased puts an item of form 1 with 60 of 100 tokens out on two leases, and 25 stored.
func putLeased(t *testing.T, w *world, limits *limiter.Limits) *schema.Bucket {
	t.Helper()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	item := schema.NewBucketItem("ns1", w.bucket, 0)
	maps.Copy(item, map[string]types.AttributeValue{
		"rf": number(epoch), "cv": schema.NumberAttribute(limits.Hash()), "cg": number(3), "lvl": number(1), "ep": number(epoch - 5000), "wcu": number(41),
		"lt": number(epoch), "lw3": text("ABCDEFGHI:1z0k"), "lc3": text("ABCDEFGHI:1y77"), "wt": text("KLMNOPQRS:3aa"),
		"b_x_tk": number(25_000), "b_x_rm": number(17), "b_x_cp": number(100_000), "b_x_ra": number(60_000), "b_x_rp": number(60_000), "b_x_tc": number(75_000),
		"b_x_h": number(60_000), "ls_ABCDEFGHI": text("1k8 x=" + strconv.FormatInt(40_000, 36)), "ls_KLMNOPQRS": text("2aa x=" + strconv.FormatInt(20_000, 36)),
	})
	if _, err := w.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(tableName), Item: item}); err != nil {
		t.Fatalf("%v", err)
	}
	return w.read(0)
}

// read returns the state of the item; nil for none.
func (w *world) read(shard int) *schema.Bucket {
	w.Helper()
	out, err := w.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(tableName), Key: w.key(shard).Attributes()})
	if err != nil {
		w.Fatalf("%v", err)
	}
	return w.parse(out.Item, shard)
}

// take takes millitokens on a stage, and returns whether they were there.
func take(t *testing.T, st *plan.Stage, limits *limiter.Limits, n int64) bool {
	t.Helper()
	_, r := op(t, limits, 3, limiter.Spend{Limit: "x", Take: n})
	if verdict := st.Weigh(r); verdict != plan.Exact {
		return false
	}
	st.Apply(r)
	return true
}

// TestLeasesOfFormOneCountAsTaken: what is out on lease is neither given nor refilled, and
// an item is not brought to form 2 before the last lease is over.
func TestLeasesOfFormOneCountAsTaken(t *testing.T) {
	w := newWorld(t)
	limits := limitsOf(t, limiter.PerMinute("x", 60).WithBurst(100))
	state := putLeased(t, w, limits)
	if got := plan.At(state, epoch).Tokens(0, epoch); got != 25_000 {
		t.Fatalf("at the last refill there are %d millitokens, want 25000", got)
	}
	if got := plan.At(state, epoch).Tokens(0, epoch+3_600_000); got != 40_000 {
		t.Fatalf("an hour later there are %d millitokens, want 40000: the capacity without the leases", got)
	}
	for _, form := range []int{1, 2} {
		st := plan.NewStage(state, epoch+1000, plan.Options{Form: form})
		if take(t, st, limits, 26_001) {
			t.Errorf("form %d: more is given than the item has", form)
		}
		if !take(t, st, limits, 26_000) {
			t.Errorf("form %d: what the item has is not given", form)
		}
		if after := st.Write(w.id(9), 1).After(); after.Old == nil {
			t.Errorf("form %d: an item with leases of form 1 comes into form 2", form)
		}
	}
	if err := plan.NewStage(state, epoch, plan.Options{}).Lease(plan.LeaseWrite{Replica: 1, Lease: &schema.Lease{Rate: 1, Room: 1}}); err == nil {
		t.Error("an item of form 1 takes a lease of form 2")
	}
}

// TestDeadLeasesOfFormOneAreSpent: a lease that is ended adds no token, and makes the room
// whole. After the last one the item comes into form 2, with the same balance.
func TestDeadLeasesOfFormOneAreSpent(t *testing.T) {
	w := newWorld(t)
	limits := limitsOf(t, limiter.PerMinute("x", 60).WithBurst(100))
	state := putLeased(t, w, limits)
	changed := state.Old.Leases[1]
	changed.Text += "0"
	st := plan.NewStage(state, epoch+1000, plan.Options{Form: 2})
	if err := st.ReapOld([]schema.OldLease{state.Old.Leases[0], changed}); err != nil {
		t.Fatalf("%v", err)
	}
	landed, one := w.send(st.Write(w.id(9), 1), 0)
	if !landed || one.Old == nil || len(one.Old.Leases) != 1 || one.Balances[0].Leased != 20_000 {
		t.Fatalf("landed %t, state %+v; want one lease of 20000 left", landed, one)
	}
	if at := one.Old.Balances["x"]; at.Tokens != 26_000 || at.Remainder != 17 || at.Refilled != epoch+1000 {
		t.Errorf("the balance is %+v, want 26000 and the remainder", at)
	}
	st = plan.NewStage(one, epoch+1000, plan.Options{Form: 2})
	if err := st.ReapOld(one.Old.Leases); err != nil {
		t.Fatalf("%v", err)
	}
	landed, both := w.send(st.Write(w.id(9), 1), 0)
	if !landed || both.Old != nil {
		t.Fatalf("landed %t, state %+v; want form 2", landed, both)
	}
	if got := plan.At(both, epoch).Tokens(0, epoch+1000); got != 26_000 {
		t.Errorf("in form 2 there are %d millitokens, want 26000", got)
	}
	if got := plan.At(both, epoch).Tokens(0, epoch+3_600_000); got != 100_000 {
		t.Errorf("in the end there are %d millitokens, want the capacity", got)
	}
	if !both.Newer(one) || !one.Newer(state) {
		t.Error("a later state is not newer")
	}
}

// TestOldCopiesAreRefused: a write planned on an item of form 1 lands on no later state of
// it, whatever the other writer changed.
func TestOldCopiesAreRefused(t *testing.T) {
	limits := limitsOf(t, limiter.PerMinute("x", 60).WithBurst(100))
	for _, form := range []int{1, 2} {
		w := newWorld(t)
		state := putLeased(t, w, limits)
		st := plan.NewStage(state, epoch, plan.Options{Form: form})
		if !take(t, st, limits, 1000) {
			t.Fatal("no token")
		}
		write := st.Write(w.id(9), 1)
		for name, change := range map[string]func(*schema.Expression){
			"take":   func(e *schema.Expression) { e.Add("b_x_tk", -1); e.Add("wcu", 1) },
			"turn":   func(e *schema.Expression) { e.Set("wt", schema.NameAttribute("KLMNOPQRS:3ab")); e.Add("wcu", 2) },
			"retire": func(e *schema.Expression) { e.Add("ep", 1) },
			"refill": func(e *schema.Expression) { e.Add("rf", 1); e.Add("wcu", 1) },
		} {
			w := newWorld(t)
			putLeased(t, w, limits)
			e := schema.NewExpression()
			change(e)
			if _, err := w.db.UpdateItem(context.Background(), e.Input(tableName, w.key(0))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if landed, image := w.send(write, 0); landed || write.Outcome(image) != plan.Dead && write.Outcome(image) != plan.Lost {
				t.Errorf("form %d, %s: landed %t", form, name, landed)
			}
		}
		if landed, image := w.send(write, 0); !landed || write.Outcome(image) != plan.Landed {
			t.Errorf("form %d: the write is refused by the state that it is for", form)
		}
		if landed, image := w.send(write, 0); landed || write.Outcome(image) != plan.Landed {
			t.Errorf("form %d: a copy lands twice, or does not find its id", form)
		}
	}
}
