package dynamo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// doUnder puts the bucket under limits of a generation, and then is do.
func (w *scene) doUnder(generation uint64, sp limiter.Spend, limits ...limiter.Limit) {
	w.t.Helper()
	m := w.member(limits...)
	spends := []limiter.Spend{{Limit: sp.Limit}, sp}
	if w.item() == nil {
		spends = spends[1:]
	}
	for _, spend := range spends {
		m.look()
		if !m.intend(0, generation, spend).send() {
			w.t.Fatal("what rests on the item as it is was refused")
		}
	}
}

// attributes returns how many attributes the item has that begin so.
func (w *scene) attributes(prefix string) (n int) {
	w.t.Helper()
	raw, err := w.rawItem()
	if err != nil {
		w.t.Fatal(err)
	}
	for name := range raw {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// A refill drops a dormant limit that has no use any more, and what stands for those
// that were forgotten, and no other write does.
func TestARefillDropsDormantLimits(t *testing.T) {
	w := newScene(t)
	for i := range limiter.MaxDormant + 1 {
		b := limiter.Custom(fmt.Sprint("b", i), 10, 1, time.Duration(1+i)*time.Minute)
		w.doUnder(uint64(1+i), limiter.Spend{Limit: b.Name, Take: 3000}, aSecond, b) // #nosec G115 -- not below 0
	}
	w.doUnder(100, take(1), aSecond)
	if v := w.item(); len(v.balances) != 1+limiter.MaxDormant || v.use != 3000 || v.until != milliseconds(3*60) {
		t.Fatalf("%d limits, and %+v for those forgotten", len(v.balances), v.forgotten)
	}
	a := w.member(aSecond)
	a.do(1, take(1))
	if n := len(w.item().balances); n != 1+limiter.MaxDormant {
		t.Errorf("%d limits, want all that have use", n)
	}
	a.do(5*3*60, take(1)) // b1 to b4 take 2 to 5 minutes for each of 3 tokens
	if n := len(w.item().balances); n != 1+limiter.MaxDormant-4 || w.item().use != 0 {
		t.Errorf("%d limits and %+v after the first had no use any more", n, w.item().forgotten)
	}
	a.do(86_400, take(1))
	if n := w.attributes("b_b") + w.attributes(schema.AttrForgotten) + w.attributes(schema.AttrUseBefore); n != 0 || w.item().ttl == 0 {
		t.Errorf("%d attributes of dormant limits are left after a day", n)
	}
}

// dormantHoles are late writes that would drop, or keep, what a dormant limit has.
func dormantHoles() []hole {
	b := limiter.PerMinute("b", 60)
	return []hole{{
		name: "a refill that drops a dormant limit that was used since",
		prepare: func(w *scene) *planned {
			w.doUnder(1, limiter.Spend{Limit: "b", Take: 1000}, aSecond, b)
			w.doUnder(2, take(9), aSecond)
			a := w.member(aSecond)
			a.look()
			stale := a.intend(5, 2, take(3))
			w.doUnder(3, limiter.Spend{Limit: "b", Take: 50_000}, aSecond, b)
			w.doUnder(4, take(0.001), aSecond)
			return stale
		},
		rule: func(in *dynamodb.UpdateItemInput) {
			without(func(c clause) bool { return strings.HasPrefix(c.attr, "b_b_") || c.is(schema.AttrGeneration, "=") })(in)
		},
		wrong: func(w *scene) bool { return w.item().any("b") == nil },
	}}
}

func TestDormantHoles(t *testing.T) { tryHoles(t, dormantHoles()) }

// A bucket is kept until no limit has use: neither one that is dormant, nor one that
// carries use, nor one that was forgotten.
func TestTTLWaitsForAllUse(t *testing.T) {
	const day = 86_400
	for name, change := range map[string]func(w *scene){
		"dormant": func(w *scene) {
			w.doUnder(1, limiter.Spend{Limit: "b", Take: 3000}, aSecond, limiter.PerDay("b", 1).WithBurst(10))
			w.doUnder(2, take(1), aSecond)
		},
		"carried": func(w *scene) {
			w.doUnder(1, limiter.Spend{Limit: "b", Take: 3000}, aSecond, limiter.PerDay("b", 1).WithBurst(10))
			w.doUnder(2, take(1), aSecond, limiter.PerDay("b", 1))
		},
		"forgotten": func(w *scene) {
			w.doUnder(1, limiter.Spend{Limit: "b", Take: 3000}, aSecond, limiter.PerDay("b", 1).WithBurst(10))
			for i := range limiter.MaxDormant {
				c := limiter.PerDay(fmt.Sprint("c", i), 1).WithBurst(10)
				w.doUnder(uint64(2+i), limiter.Spend{Limit: c.Name, Take: 3000}, aSecond, c) // #nosec G115 -- not below 0
			}
			w.doUnder(100, take(1), aSecond)
		},
	} {
		w := newScene(t)
		change(w)
		w.member(aSecond).do(60, take(1)) // and no write makes it shorter
		if w.expires(3 * day) {
			t.Errorf("%s: the item is gone before its limits are without use", name)
		}
		if !w.expires(4*day + 3*3600) { // a take is reckoned from a balance of 0
			t.Errorf("%s: the item stays after its limits are without use", name)
		}
	}
}

// TestSharesOfARaise: the shares of a bucket's shards have together what the whole has,
// also after a limit was lowered and raised, but for a millitoken at each split.
func TestSharesOfARaise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := func(what string) tokenbucket.Params {
			return tokenbucket.Params{Capacity: rapid.Int64Range(64, 5000).Draw(t, what), Amount: 1, Period: 1000}
		}
		whole := params("capacity")
		state := tokenbucket.Bucket{Tokens: whole.Capacity - rapid.Int64Range(0, 2*whole.Capacity).Draw(t, "used")}
		if rapid.Bool().Draw(t, "lowered") {
			lower := params("lowered to")
			state, whole = state.Reparameterize(whole, lower, 0), lower
		}
		shards := []schema.Shard{schema.WholeBucket(0)}
		states := []tokenbucket.Bucket{state}
		for len(shards) < 8 {
			next := make([]schema.Shard, 0, 2*len(shards))
			parts := make([]tokenbucket.Bucket, 0, 2*len(shards))
			for i := range shards {
				stays, leaves := shards[i].Split()
				stays.Moving = false
				x := moving(states[i].Tokens, stays.Share(whole).Capacity, leaves.Share(whole).Capacity)
				half := (&expression{schema.NewExpression()}).splitCarried("l", states[i].Carried)
				next = append(next, stays, leaves)
				parts = append(parts, tokenbucket.Bucket{Tokens: states[i].Tokens - x, Carried: half}, tokenbucket.Bucket{Tokens: x, Carried: half})
			}
			shards, states = next, parts
		}
		to := params("to")
		want := state.Reparameterize(whole, to, 0)
		var tokens, use int64
		for i := range shards {
			p := shards[i].Share(to)
			next := states[i].Reparameterize(shards[i].Share(whole), p, 0)
			tokens, use = tokens+next.Tokens, use+next.Use(p, 0)
			if next.Tokens > p.Capacity || next.Carried < 0 {
				t.Fatalf("shard %d: %+v of %+v", i, next, p)
			}
		}
		if wantUse := want.Use(to, 0); use < wantUse || use > wantUse+8 {
			t.Fatalf("the shards have a use of %d together, want %d and 8 more at most", use, wantUse)
		}
		if most := max(want.Tokens, state.Tokens); state.Carried == 0 && to.Capacity >= whole.Capacity && tokens != most || tokens > most {
			t.Fatalf("the shards have %d together, want %d", tokens, most)
		}
	})
}
