package dynamo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// carriedHoles are late writes that rest on use that has changed since.
func carriedHoles() []hole {
	b := limiter.PerMinute("b", 60)
	return []hole{{
		name: "a refill that drops a dormant limit that was greater since",
		prepare: func(w *scene) *planned {
			w.doUnder(1, limiter.Spend{Limit: "b", Take: 1000}, aSecond, b)
			w.doUnder(2, take(5), aSecond)
			a := w.member(aSecond)
			a.look()
			stale := a.intend(4, 2, take(7))
			w.doUnder(3, limiter.Spend{Limit: "b", Take: 940_000}, aSecond, limiter.PerMinute("b", 1000))
			w.doUnder(4, take(0.001), aSecond)
			return stale
		},
		rule:  without(func(c clause) bool { return c.is(schema.AttrGeneration, "=") }),
		wrong: func(w *scene) bool { return w.item().any("b") == nil },
	}, {
		name: "a change of limits that has not seen a refund of carried use",
		prepare: func(w *scene) *planned {
			w.doUnder(1, take(90), limiter.Custom("a", 100, 1, time.Second))
			w.doUnder(2, take(0.001), aSecond)
			w.member(aSecond).do(0, refund(0.001))
			a := w.member(limiter.Custom("a", 200, 1, time.Second))
			a.look()
			stale := a.intend(0, 3, limiter.Spend{Limit: "a"})
			w.member(aSecond).do(0, refund(50))
			return stale
		},
		rule:  without(func(c clause) bool { return c.is("b_a_cu", "=") }),
		wrong: func(w *scene) bool { return w.item().find("a").state.Tokens < 150_000 },
	}}
}

// TestCarriedHoles: changes of limits that go to and fro at one time deceive no late write.
func TestCarriedHoles(t *testing.T) { tryHoles(t, carriedHoles()) }

// leasedNames makes an item with more limits than are remembered, of each of which 5
// of 10 tokens are out on lease, and takes them away.
func leasedNames(w *scene) []limiter.Limit {
	w.t.Helper()
	limits := make([]limiter.Limit, 0, limiter.MaxDormant+2)
	var text strings.Builder
	text.WriteString("1")
	slots := make(map[string]types.AttributeValue)
	for i := range limiter.MaxDormant + 2 {
		name := fmt.Sprint("l", i)
		limits = append(limits, limiter.Custom(name, 10, 1, time.Second))
		fmt.Fprintf(&text, " %s=3uw", name) // 5,000 to the base of 36
		slots["b_"+name+"_h"], slots["b_"+name+"_tk"] = schema.NumberAttribute(5000), schema.NumberAttribute(0)
	}
	w.doUnder(1, limiter.Spend{Limit: "l0", Take: 1}, limits...)
	slots["ls_R9"] = &types.AttributeValueMemberS{Value: text.String()}
	w.setRaw(slots)
	return limits
}

// A limit that was forgotten while tokens of it were out on lease comes back with these
// still out.
func TestAForgottenLimitComesBackWithItsLease(t *testing.T) {
	w := newScene(t)
	limits := leasedNames(w)
	w.doUnder(2, take(1), aSecond)
	if n := len(w.item().balances); n != 1+limiter.MaxDormant {
		t.Fatalf("%d limits, want some forgotten", n)
	}
	m := w.member(limits...)
	m.look()
	if !m.intend(3600, 3, limiter.Spend{Limit: "l0", Take: 1}).send() {
		t.Fatal("refused")
	}
	for _, l := range limits {
		if b := w.item().find(l.Name); b.leased != 5000 || b.state.Tokens > 5000 {
			t.Errorf("%s has %d millitokens and %d on lease, want 5000 each", l.Name, b.state.Tokens, b.leased)
		}
	}
}

// A shard of which a forgotten limit is out on lease is neither split nor merged: the slots
// would stay behind.
func TestForgottenLeasesAreNotSettled(t *testing.T) {
	w := newScene(t)
	leasedNames(w)
	w.doUnder(2, take(1), aSecond)
	v := w.item()
	for i := range v.balances {
		v.balances[i].leased = 0 // returned
	}
	if v.settled() {
		t.Error("with tokens of a forgotten limit on lease the shard is divided")
	}
}

// A dormant limit of which a retired shard has seen other numbers keeps all of its use.
func TestAbsorbedUseUnderOtherNumbers(t *testing.T) {
	whole := schema.WholeBucket(0)
	stays, leaves := whole.Split()
	stays.Moving = false
	of := func(s schema.Shard, capacity, used int64) *view {
		l := limiter.PerDay("b", capacity)
		p := s.Share(l.Params())
		return &view{shard: s, balances: []balance{{limit: l, whole: l.Params(), params: p, dormant: true, state: tokenbucket.Bucket{Tokens: p.Capacity - used}}}}
	}
	for _, tc := range []struct{ own, others int64 }{{100, 1000}, {1000, 100}, {100, 100}} {
		v, found := of(stays, tc.own, 7000), of(leaves, tc.others, 45_000)
		back := stays.Absorb(leaves.Epoch)
		got := absorb(&v.balances[0], found, &back, 0)
		if use := got.state.Use(got.params, 0); use < 52_000 {
			t.Errorf("%+v: the use is %d millitokens, want 52000 at least", tc, use)
		}
	}
}
