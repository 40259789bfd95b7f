package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// consumed returns the consumption of its limit that the item of a bucket counts.
func consumed(t *testing.T, db *dynamofake.DB, o limiter.Op) int64 {
	t.Helper()
	id, err := namespace(t.Context(), o.Bucket.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	key := schema.BucketKey(id, o.Bucket, 0)
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: key.Attributes()})
	if err != nil {
		t.Fatal(err)
	}
	number, ok := out.Item[schema.LimitAttr("l", schema.LimitConsumed)].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("the item of %v counts nothing", o.Bucket)
	}
	n, err := strconv.ParseInt(number.Value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// account is the sum that callers certainly took, less their refunds.
type account struct {
	*testing.T

	net map[string]int64 // by entity
}

// call decides ops, and notes their consumption.
func (a *account) call(e *engine.Engine, ops ...limiter.Op) {
	a.Helper()
	admitted, err := e.Take(a.Context(), time.Now(), ops)
	if err != nil {
		a.Errorf("a call without a deadline: %v", err)
		return
	}
	for i := range ops {
		sp := &ops[i].Spends[0]
		a.net[ops[i].Bucket.Entity] += sp.Charge - sp.Refund
		if admitted {
			a.net[ops[i].Bucket.Entity] += sp.Take
		}
	}
}

// leaseFaults is a plan in which every third write of a lease has no reply: it was applied,
// it was not, or it arrives late.
func leaseFaults() dynamofake.Plan {
	kinds := []dynamofake.Kind{dynamofake.LoseReply, dynamofake.ServerError, dynamofake.AppliedError, dynamofake.HoldRequest}
	slow, writes := slow(), 0
	return func(c dynamofake.Call) dynamofake.Fault {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && slices.Contains(slices.Collect(maps.Values(in.ExpressionAttributeNames)), schema.AttrLeases) {
			if writes++; writes%3 == 0 {
				return dynamofake.Fault{Kind: kinds[writes/3%len(kinds)]}
			}
		}
		return slow(c)
	}
}

// Once the replicas are closed the items count the admissions less the refunds, also those from
// leases, and where replies of lease writes are lost. No call waits for a lease in vain.
func TestWhatLeasesServeIsCounted(t *testing.T) {
	for name, faults := range map[string]func() dynamofake.Plan{"no faults": slow, "lost replies": leaseFaults} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { countsConsumption(t, faults(), seed) })
			})
		}
	}
}

func countsConsumption(t *testing.T, faults dynamofake.Plan, seed uint64) {
	t.Helper()
	db := newTable(t)
	db.SetPlan(faults)
	engines := []*engine.Engine{newEngine(t, db, leased), newEngine(t, db, leased)}
	a := account{t, make(map[string]int64)}
	random := rand.New(rand.NewPCG(seed, 3)) // #nosec G404 -- repeatable
	child, parent := limiter.PerSecond("l", 1000), limiter.PerSecond("l", 1500)
	for range 4000 {
		sp := limiter.Spend{Take: tokens(1 + random.Int64N(4))}
		switch random.IntN(40) {
		case 0:
			sp = limiter.Spend{Refund: tokens(1)}
		case 1:
			sp = limiter.Spend{Charge: tokens(2)}
		case 2:
			sp = limiter.Spend{Take: tokens(300)} // of which a lease keeps a part
		}
		ops := []limiter.Op{op(t, "child", child, sp), op(t, "parent", parent, sp)}
		a.call(engines[random.IntN(len(engines))], ops[:1+random.IntN(2)]...)
		time.Sleep(time.Millisecond)
	}
	served := engines[0].Stats().Served + engines[1].Stats().Served
	db.SetPlan(nil)
	closing(t, engines...)
	for entity, limit := range map[string]limiter.Limit{"child": child, "parent": parent} {
		if got, want := consumed(t, db, op(t, entity, limit, limiter.Spend{})), a.net[entity]; got != want {
			t.Errorf("the item of %s counts %d millitokens as consumed; %d were", entity, got, want)
		}
	}
	if served < 2000 {
		t.Errorf("%d decisions from leases, want most of 4000", served)
	}
}

// To count costs no write: beside those of the lease there are as many as decisions that it did not serve.
func TestCountingCostsNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 3000
		db := newTable(t)
		e := newEngine(t, db, leased)
		o := op(t, "u", limiter.PerSecond("l", 10_000), limiter.Spend{Take: tokens(1)})
		for range takes {
			mustTake(t, e, true, o)
			time.Sleep(time.Millisecond)
		}
		late := tokens(takes) - consumed(t, db, o)
		closing(t, e)
		s := e.Stats()
		if most := s.Granted + s.Renewed + s.Returned + takes - s.Served; s.Writes > most || s.Renewed == 0 {
			t.Errorf("%d writes, want at most %d: %d takes of which %d were served, %d renewals", s.Writes, most, takes, s.Served, s.Renewed)
		}
		if got := consumed(t, db, o); got != tokens(takes) {
			t.Errorf("the item counts %d millitokens, want %d", got, tokens(takes))
		}
		if late > tokens(2200) {
			t.Errorf("%d millitokens were not counted yet, more than those of 2.2 s", late)
		}
	})
}
