package dynamo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A write that arrives twice is applied once, as long as its id is in its slot.
// When another write has taken the slot it is applied again, which takes too much and
// never too little; one that gives tokens is not.
func TestAWriteIsAppliedOnce(t *testing.T) {
	other := func(w *scene) { w.member(aSecond).do(0, take(1)) }
	mate := func(w *scene) {
		w.seen += schema.SlotCount - 1
		other(w)
	}
	refund := limiter.Spend{Limit: "a", Refund: limiter.Milli}
	for _, tc := range []struct {
		name    string
		spend   limiter.Spend
		between func(w *scene)
		rule    func(*dynamodb.UpdateItemInput)
		want    bool // applied again
	}{
		{"at once", take(1), func(*scene) {}, nil, false},
		{"after a replica with another slot", take(1), other, nil, false},
		{"after a replica with the same slot", take(1), mate, nil, true},
		{"a refund at once", refund, func(*scene) {}, nil, false},
		{"a refund after a replica with another slot", refund, other, nil, false},
		{"a refund after a replica with the same slot", refund, mate, nil, false},
		{"without the rule", take(1), func(*scene) {}, without(func(c clause) bool { return strings.HasPrefix(c.attr, schema.AttrSlot) }), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newScene(t)
			a := w.member(aSecond)
			a.do(0, take(4))
			a.look()
			p := a.intend(0, 1, tc.spend)
			if tc.rule != nil {
				tc.rule(p.write.update)
			}
			if !p.send() {
				t.Fatal("refused")
			}
			tc.between(w)
			if got := p.send(); got != tc.want {
				t.Errorf("applied again: %t, want %t", got, tc.want)
			}
		})
	}
}

// What a write gives that was in doubt, and is refused when it is sent again, is
// settled by its id only: a refund of another replica may have overwritten that, so that
// no other write may give it. What was sure not to be applied is tried again.
func TestAGiftInDoubtIsNotGivenAgain(t *testing.T) {
	refund := limiter.Spend{Limit: "a", Refund: limiter.Milli}
	for _, tc := range []struct {
		name      string
		spend     limiter.Spend
		doubted   bool
		overwrite bool
		want      error
		applied   bool
	}{
		{"its id is there", refund, true, false, nil, true},
		{"its id is gone", refund, true, true, errDropped, false},
		{"its id is gone, no doubt", refund, false, true, nil, false},
		{"a take, its id is gone", take(1), true, true, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newScene(t)
			a := w.member(aSecond)
			a.do(0, take(4))
			a.look()
			p := a.intend(0, 1, tc.spend)
			p.write.doubted = tc.doubted
			if !p.send() {
				t.Fatal("refused")
			}
			if tc.overwrite {
				w.seen += schema.SlotCount - 1
				w.member(aSecond).do(0, limiter.Spend{Limit: "a", Refund: limiter.Milli})
			}
			o := p.write.refusedBy(w.item())
			if o.applied != tc.applied || !errors.Is(o.err, tc.want) || !o.known {
				t.Errorf("got applied %t, error %v, known %t, want %t, %v, true", o.applied, o.err, o.known, tc.applied, tc.want)
			}
		})
	}
}

// What a write gives that was in doubt is given by another when it is sure that the first
// was not applied and never will be: others have refilled, and left its slot alone.
func TestAGiftThatCannotArriveIsGivenByAnother(t *testing.T) {
	for _, tc := range []struct {
		name   string
		arrive bool // before the others refill
		mate   bool // the others share its slot
		want   error
	}{
		{"it never arrived", false, false, nil},
		{"its id is there", true, false, nil},
		{"its id may be gone", true, true, errDropped},
		{"its id may have been there", false, true, errDropped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newScene(t)
			a := w.member(aSecond)
			a.do(0, take(4))
			a.look()
			p := a.intend(20, 1, limiter.Spend{Limit: "a", Refund: limiter.Milli}) // it is full: planned with its refill
			p.write.doubted = true
			if p.write.refilled == nil {
				t.Fatal("it does not refill")
			}
			if tc.arrive && !p.send() {
				t.Fatal("refused")
			}
			other := take(7)
			if tc.mate {
				w.seen += schema.SlotCount - 1
				other = limiter.Spend{Limit: "a", Charge: 7 * limiter.Milli}
			}
			w.member(aSecond).do(21, other)
			if p.send() {
				t.Fatal("applied again")
			}
			if o := p.write.refusedBy(w.item()); o.applied != (tc.arrive && !tc.mate) || !errors.Is(o.err, tc.want) {
				t.Errorf("got applied %t, error %v, want %t, %v", o.applied, o.err, tc.arrive && !tc.mate, tc.want)
			}
		})
	}
}

// Who asked for a turn takes it with the next write that refills, and nobody else does.
func TestATurnIsTakenOnce(t *testing.T) {
	for asker, left := range map[string]string{"2:1": "", "22:1": "22:1"} {
		w := newScene(t)
		w.member(aSecond).do(0, take(10))
		w.setRaw(map[string]types.AttributeValue{schema.AttrTurn: &types.AttributeValueMemberS{Value: asker}})
		a := w.member(aSecond)
		a.do(3, take(2))
		if got := w.item().turn; got != left {
			t.Errorf("replica %d wrote, and the turn of %s is %q, want %q", a.id, asker, got, left)
		}
	}
}

// withTTL has an update set another ttl.
func withTTL(in *dynamodb.UpdateItemInput, ttl int64) {
	for name, attr := range in.ExpressionAttributeNames {
		if _, after, ok := strings.Cut(*in.UpdateExpression, name+"="); ok && attr == schema.AttrTTL {
			value, _, _ := strings.Cut(after, ",")
			value, _, _ = strings.Cut(value, " ")
			in.ExpressionAttributeValues[value] = schema.NumberAttribute(ttl)
		}
	}
}

// A charge keeps the item until the deepest debt that it can lead to is over, and no
// longer: with the ttl of a take its debt is forgotten.
func TestChargesAreKeptFromTheFloor(t *testing.T) {
	const day = 86_400
	for _, broken := range []bool{false, true} {
		w := newScene(t)
		a := w.member(limiter.PerDay("a", 10))
		a.do(0, take(1))
		a.look()
		p := a.intend(0, 1, limiter.Spend{Limit: "a", Charge: 100_000})
		if broken {
			withTTL(p.write.update, a.knows.view.ttl)
		}
		if !p.send() {
			t.Fatal("refused")
		}
		if got := w.expires(10 * day); got != broken {
			t.Errorf("without the rule: %t; a bucket with 10 days of debt expired after ten: %t", broken, got)
		}
		if !broken && !w.expires(12*day) {
			t.Error("a bucket that is full again does not expire")
		}
	}
}

// An item without a ttl may be in any debt, from a charge that the next writer does
// not know of: what it is given then is reckoned from the floor.
func TestAFirstTTLIsFromTheFloor(t *testing.T) {
	const day = 86_400
	w := newScene(t)
	a, b := w.member(limiter.PerDay("a", 10), limiter.PerDay("b", 10)), w.member(limiter.PerDay("a", 10), limiter.PerDay("b", 10))
	a.do(0, take(1))
	w.removeTTL()
	a.look()
	p := a.intend(0, 1, take(1))
	b.do(0, limiter.Spend{Limit: "b", Charge: 100_000})
	w.removeTTL()
	if !p.send() {
		t.Fatal("refused")
	}
	if w.expires(10*day) || !w.expires(12*day) {
		t.Error("an item with 9 days of debt and no ttl before is not kept for 11 days")
	}
}

func (w *scene) removeTTL() {
	w.t.Helper()
	if _, err := w.db.UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(w.table), Key: w.key.Attributes(),
		UpdateExpression: aws.String("REMOVE #0"), ExpressionAttributeNames: map[string]string{"#0": schema.AttrTTL},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// A change of limits drops the remainder: under another period it would be worth
// many tokens, here 86.
func TestChangesDropTheRemainder(t *testing.T) {
	for _, broken := range []bool{false, true} {
		w := newScene(t)
		slow, fast := w.member(limiter.Custom("a", 1000, 1, 24*time.Hour)), w.member(limiter.PerSecond("a", 1000))
		slow.do(0, take(1000))
		fast.look()
		p := fast.intend(86.399, 2, take(0))
		if broken {
			keepRemainder(p.write.update, 86_399_000)
		}
		if !p.send() {
			t.Fatal("refused")
		}
		raw, err := w.rawItem()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseItem(w.table, w.key, raw, nil); (err != nil) != broken {
			t.Errorf("without the rule: %t; the item: %v", broken, err)
		}
	}
}

// keepRemainder has an update that leaves the remainder of limit a alone set it.
func keepRemainder(in *dynamodb.UpdateItemInput, n int64) {
	for name, attr := range in.ExpressionAttributeNames {
		if attr == schema.LimitAttr("a", schema.LimitRemainder) {
			in.ExpressionAttributeValues[":rm"] = schema.NumberAttribute(n)
			in.UpdateExpression = aws.String(strings.Replace(*in.UpdateExpression, "SET ", "SET "+name+"=:rm, ", 1))
		}
	}
}

// What a create is believed to have made is what it made.
func TestMadeItems(t *testing.T) {
	w := newScene(t)
	a := w.member(aSecond, limiter.PerDay("b", 7).WithMaxDebt(limiter.NoDebt), limiter.Unlimited("u"))
	p := a.intend(3, 1, take(4), limiter.Spend{Limit: "b", Take: 7000, Charge: 1000})
	if !p.send() {
		t.Fatal("refused")
	}
	opts := []cmp.Option{
		cmp.AllowUnexported(view{}, schema.Shard{}, balance{}, schema.Version{}, forgotten{}), cmp.Transformer("hash", (*limiter.Limits).Hash), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(limiter.Limit{}, "MaxDebt"), // the floor is compared
	}
	if diff := cmp.Diff(p.write.made, w.item(), opts...); diff != "" {
		t.Errorf("made (-believed +is):\n%s", diff)
	}
}

// A write is sent long before the ttl that it sets, and a take leaves every bucket
// time to fill.
func TestTTLLeavesTime(t *testing.T) {
	for _, l := range []limiter.Limit{aSecond, limiter.PerDay("a", 10), limiter.Custom("a", 1_000_000, 1, time.Second)} {
		w := newScene(t)
		a := w.member(l)
		for i := range 50 {
			now := float64(i*i) * 600
			a.look()
			if a.knows.view != nil && a.knows.view.find("a").state.Tokens < 1000 {
				break
			}
			a.do(now, take(1))
			fill := l.RefillPeriod.Seconds() / float64(l.RefillAmount) * float64(l.Capacity)
			if got, least := float64(w.item().ttl), float64(milliseconds(now))/1000+fill+maxBudget.Seconds(); got < least {
				t.Fatalf("%v at %v s: ttl %v, want at least %v", l, now, got, least)
			}
		}
	}
}

// The greatest bucket, with every limit there can be, stays within DynamoDB's 4 KB
// for an expression, through every kind of write.
func TestManyLimits(t *testing.T) {
	limits := make([]limiter.Limit, limiter.MaxLimits)
	others := make([]limiter.Limit, limiter.MaxLimits)
	spends := make([]limiter.Spend, limiter.MaxLimits)
	for i := range limits {
		name := fmt.Sprintf("%s%02d", strings.Repeat("n", limiter.MaxLimitName-2), i)
		limits[i], others[i] = limiter.Custom(name, limiter.MaxTokens, limiter.MaxTokens-1, time.Hour), limiter.Custom("x"+name[1:], limiter.MaxTokens, 1, time.Hour)
		spends[i] = limiter.Spend{Limit: name, Take: int64(limiter.MaxTokens) * limiter.Milli / 3, Charge: 1}
	}
	w := newScene(t)
	a, b := w.member(limits...), w.member(others...)
	kinds := map[string]int{}
	for i := range 6 {
		m, generation := a, uint64(1)
		if i > 3 {
			m, generation = b, 2
		}
		m.look()
		if m == b {
			spends = []limiter.Spend{{Limit: others[0].Name, Take: 1000}}
		}
		p := m.intend(float64(i*i*600), generation, spends...)
		if in := p.write.update; in != nil {
			if n := max(len(*in.ConditionExpression), len(*in.UpdateExpression)); n > 4096 {
				t.Errorf("write %d: an expression of %d bytes", i, n)
			}
			kinds[fmt.Sprint(swaps(in), p.plan.stage.plain())]++
		}
		if !p.send() {
			t.Fatalf("write %d was refused", i)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("kinds of writes: %v, want plain, refill and change", kinds)
	}
}

// DynamoDB takes the writes for a bucket with tokens out on lease, which nothing
// makes yet: full and not full, plain and refilling.
func TestLeasedBucketsOnDynamoDBLocal(t *testing.T) {
	client, table := dynamotest.Start(t).Client(t), dynamotest.TableName(t)
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	w := &scene{t: t, db: client, table: table, key: schema.BucketKey("ns", "e", "r", 0, 0)}
	a := w.member(aSecond)
	a.do(0, take(2))
	w.update("SET #b_a_h = :b_a_h ADD #b_a_tk :b_a_tk", map[string]int64{"b_a_h": 3000, "b_a_tk": -3000})
	for _, step := range []struct{ at, take, left float64 }{
		{0, 1, 4},       // plain
		{1, 4.5, 0.5},   // with 1 due
		{100, 7, 0},     // full: 7, as 3 are out
		{101.5, 1, 0.5}, // with 1.5 due
	} {
		a.do(step.at, take(step.take))
		if got := w.balance(step.at) - 3; got != step.left {
			t.Errorf("at %v s: %v left, want %v", step.at, got, step.left)
		}
	}
}
