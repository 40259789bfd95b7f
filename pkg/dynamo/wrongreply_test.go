package dynamo_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// desynchronised is a table behind a proxy that answers calls with replies to other calls.
type desynchronised struct {
	*dynamofake.DB

	mu      sync.Mutex
	on      bool
	refusal bool // refusals are replaced, too
	replace func(asked string, before map[string]*dynamodb.UpdateItemOutput) *dynamodb.UpdateItemOutput
	before  map[string]*dynamodb.UpdateItemOutput // the first reply of each partition key
}

func pkOf(item map[string]types.AttributeValue) string {
	pk, _ := item["PK"].(*types.AttributeValueMemberS)
	if pk == nil {
		return ""
	}
	return pk.Value
}

// UpdateItem implements dynamo.Client.
func (d *desynchronised) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := d.DB.UpdateItem(ctx, in, opts...)
	if err != nil && !d.refusal || !strings.Contains(pkOf(in.Key), "/BUCKET#") {
		return out, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before[pkOf(in.Key)] == nil && err == nil {
		d.before[pkOf(in.Key)] = out
	}
	if d.on {
		if other := d.replace(pkOf(in.Key), d.before); other != nil {
			return other, nil
		}
	}
	return out, err
}

// turn begins to replace replies, or ends it.
func (d *desynchronised) turn(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = on
}

// anotherBucket returns the reply to a call for another bucket.
func anotherBucket(asked string, before map[string]*dynamodb.UpdateItemOutput) *dynamodb.UpdateItemOutput {
	for pk, out := range before {
		if pk != asked {
			return out
		}
	}
	return nil
}

// anOldReply returns the reply to an earlier call for the same bucket.
func anOldReply(asked string, before map[string]*dynamodb.UpdateItemOutput) *dynamodb.UpdateItemOutput {
	return before[asked]
}

// Replies that are those to other calls admit nothing. Where the refusals of copies are right, they
// show the outcome of a write. Where no reply is right, there is an outage, and a policy decides
// until a right one comes.
func TestRepliesOfOtherBuckets(t *testing.T) {
	for name, tt := range map[string]struct {
		replace func(string, map[string]*dynamodb.UpdateItemOutput) *dynamodb.UpdateItemOutput
		refusal bool
	}{
		"another bucket": {anotherBucket, false}, "an old reply": {anOldReply, false},
		"another bucket, always": {anotherBucket, true}, "an old reply, always": {anOldReply, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &desynchronised{DB: newTable(t), replace: tt.replace, refusal: tt.refusal, before: make(map[string]*dynamodb.UpdateItemOutput)}
				var log bytes.Buffer
				replicas := make([]*limiter.Limiter, 2)
				stores := make([]*dynamo.Store, 2)
				for i := range replicas {
					stores[i] = newStore(t, db, func(cfg *dynamo.Config) {
						cfg.Attempt, cfg.Budget, cfg.Logger = 0, 0, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
					})
					replicas[i] = decider(t, stores[i], 0)
				}
				if err := stores[0].PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 100))}); err != nil {
					t.Fatal(err)
				}
				ask := func(i int, entity string) (d limiter.Decision) {
					if err := replicas[i%2].Decide(t.Context(), time.Now(), asking(entity, tokens(1), limiter.Deny), &d); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
					return d
				}
				admitted, policy := 0, 0
				for i := range 8 {
					ask(i, "decoy")
					if ask(i, "hot").Admitted {
						admitted++
					}
				}
				db.turn(true)
				for i := range 600 {
					d := ask(i, "hot")
					if d.Admitted {
						admitted++
					}
					if d.Policy == limiter.Deny {
						policy++
					}
				}
				t.Logf("%d of 600 calls admitted, %d by policy, %d wrong replies", admitted, policy, stores[0].Stats().Wrong+stores[1].Stats().Wrong)
				if admitted > 100 || tt.refusal != (policy > 400) || !tt.refusal && (policy > 0 || admitted < 100) {
					t.Errorf("%d calls were admitted of 100, and %d decided by policy", admitted, policy)
				}
				if text := log.String(); !strings.Contains(text, "a reply of the store is none to its call") || !strings.Contains(text, "BUCKET#hot#r#0") {
					t.Errorf("the log does not have it:\n%s", text)
				}
				db.turn(false)
				time.Sleep(time.Second)
				ask(0, "hot")
				ask(1, "hot")
				time.Sleep(time.Second)
				if d := ask(0, "decoy"); !d.Admitted || d.Policy != limiter.Unset || d.Late {
					t.Errorf("after the right replies: admitted %t, policy %v, late %t", d.Admitted, d.Policy, d.Late)
				}
				closing(t, stores...)
			})
		})
	}
}

// otherLimits is a table behind a proxy that answers reads of stored limits with those of another
// entity.
type otherLimits struct {
	*dynamofake.DB

	from, to string
}

// BatchGetItem implements dynamo.Client.
func (o *otherLimits) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	keys := in.RequestItems["buckets"]
	asked := make([]map[string]types.AttributeValue, len(keys.Keys))
	for i, k := range keys.Keys {
		asked[i] = map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: strings.Replace(pkOf(k), o.from, o.to, 1)}, "SK": k["SK"]}
	}
	keys.Keys = asked
	return o.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"buckets": keys}}, opts...)
}

// The limits of another entity are not believed.
func TestLimitsOfAnotherEntity(t *testing.T) {
	db := newTable(t)
	s := newStore(t, db, nil)
	for entity, perDay := range map[string]int64{"small": 1, "large": 1000} {
		if err := s.PutLimits(t.Context(), "default", limiter.EntityLimitsRef(entity, "r"), limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", perDay))}); err != nil {
			t.Fatal(err)
		}
	}
	closing(t, s)
	s = newStore(t, &otherLimits{db, "small", "large"}, nil)
	defer closing(t, s)
	l := decider(t, s, time.Minute)
	for range 3 {
		var d limiter.Decision
		err := l.Decide(t.Context(), t0(), asking("small", tokens(1), limiter.Deny), &d)
		if err != nil || d.Admitted || d.Policy != limiter.Deny {
			t.Errorf("admitted = %t by policy %v, %v; want it denied by policy", d.Admitted, d.Policy, err)
		}
	}
}
