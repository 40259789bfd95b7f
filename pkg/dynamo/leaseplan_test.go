package dynamo

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lane that wants nothing of leases, or gets nothing, writes what it would write if
// there were none.
func TestWithoutAStepNothingDiffers(t *testing.T) {
	limits, err := limiter.NewLimits(aSecond, limiter.Custom("b", 20, 3, 7*time.Second).WithMaxDebt(5))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		now := milliseconds(0)
		v := fullView(limits, 1, now)
		for i := range v.balances {
			b := &v.balances[i]
			if b.lease = rapid.Bool().Draw(t, "h"); b.lease {
				b.leased = rapid.Int64Range(0, 5000).Draw(t, "leased")
			}
			b.state.Tokens = rapid.Int64Range(-3000, b.room()).Draw(t, "tokens")
			b.state.Remainder = rapid.Int64Range(0, b.params.Period-1).Draw(t, "remainder")
		}
		v.ttl = rapid.SampledFrom([]int64{0, now/1000 + 1, now/1000 + 90_000}).Draw(t, "ttl")
		pending := make([]*request, rapid.IntRange(0, 3).Draw(t, "requests"))
		for i := range pending {
			n := rapid.Int64Range(1, 8000)
			sp := rapid.SampledFrom([]limiter.Spend{
				{Limit: "a", Take: n.Draw(t, "take")}, {Limit: "b", Take: n.Draw(t, "take")}, {Limit: "a", Refund: n.Draw(t, "refund")}, {Limit: "b", Charge: n.Draw(t, "charge")},
			}).Draw(t, "spend")
			at := now + rapid.SampledFrom([]int64{0, 1, 1500, 90_000}).Draw(t, "elapsed")
			r, err := newRequest(at, &limiter.Op{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}, Limits: limits, Generation: 1, Spends: []limiter.Spend{sp}})
			if err != nil {
				t.Fatal(err)
			}
			pending[i] = r
		}
		write := func(ask leaseAsk, doubtful bool) any {
			k := knowledge{view: v, known: true, now: schema.MinTime, lease: ask}
			k.clock.Doubtful = doubtful
			p := k.plan(slices.Clone(pending))
			if p.stage == nil {
				return len(p.rest)
			}
			return newWrite(simTable, schema.BucketKey("ns", "e", "r", 0, 0), writeID{1, "R:1"}, &p).update
		}
		grants := func(left []amount) []amount { return left }
		for _, tc := range []struct {
			name     string
			ask      leaseAsk
			doubtful bool
		}{
			{"it asks for nothing", leaseAsk{replica: "R", id: "1"}, false},
			{"nothing is granted", leaseAsk{replica: "R", id: "1", forced: true, size: func([]amount) []amount { return nil }}, false},
			{"others' leases are no more", leaseAsk{replica: "R", id: "1", forced: true, dead: []holding{newHolding("S", "1", of(1))}}, false},
			{"its own lease is no more", leaseAsk{replica: "R", id: "2", forced: true, own: &ownLease{text: "1 a=1"}, size: grants}, false},
			{"without an id", leaseAsk{replica: "R", forced: true, size: grants}, false},
			{"the clock is doubtful", leaseAsk{replica: "R", id: "1", forced: true, size: grants}, true},
		} {
			want, got := write(leaseAsk{}, tc.doubtful), write(tc.ask, tc.doubtful)
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("%s: want %+v, got %+v", tc.name, want, got)
			}
		}
	})
}

// planning is a bucket of which R1 has 2 of 5 tokens on lease, and what it plans next.
func planning(t *testing.T) (*scene, *tenant) {
	t.Helper()
	w := newScene(t)
	x := w.tenant(aSecond)
	w.member(aSecond).do(0, take(5))
	x.look()
	x.must(0, x.asks(2000))
	return w, x
}

func (x *tenant) request(at float64, generation uint64, limits *limiter.Limits, sp limiter.Spend) *request {
	x.t.Helper()
	r, err := newRequest(milliseconds(at), &limiter.Op{Bucket: x.bucket, Limits: limits, Generation: generation, Spends: []limiter.Spend{sp}})
	if err != nil {
		x.t.Fatal(err)
	}
	r.call = &call{}
	return r
}

// Before the bucket comes under other limits the own lease is returned: the requests
// wait for that. One that is not returned is kept as it is.
func TestALeaseIsReturnedBeforeLimitsChange(t *testing.T) {
	other, err := limiter.NewLimits(limiter.Custom("a", 20, 1, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for _, returns := range []bool{true, false} {
		w, x := planning(t)
		ask := x.holds(x.asks(1000), of(500), nil)
		if returns {
			ask.own.back = of(1500)
		}
		x.knows.lease = ask
		r := x.request(1, 2, other, take(1))
		p := x.knows.plan([]*request{r})
		if got := p.step != nil && p.stage.swap == nil && len(p.actors) == 0 && len(p.rest) == 1; got != returns {
			t.Errorf("returned: %t; the plan is a return alone: %t: %+v", returns, got, p)
		}
		if got := p.step == nil && p.stage.swap != nil && len(p.actors) == 1; got == returns {
			t.Errorf("returned: %t; the plan is a change of limits: %t: %+v", returns, got, p)
		}
		if sent := (&planned{x.member, p, newWrite(x.table, x.key, writeID{1, "R1:9"}, &p)}).send(); !sent {
			t.Fatal("refused")
		}
		if v := w.item(); returns != (len(v.leases) == 0) || returns == (v.version.Hash == other.Hash()) || v.any("a").leased == 0 != returns {
			t.Errorf("returned: %t; left %+v", returns, v)
		}
	}
}

// A request that is larger than what is stored waits for what is returned, instead of
// being denied.
func TestAReturnIsWaitedFor(t *testing.T) {
	for _, returns := range []bool{true, false} {
		_, x := planning(t)
		ask := x.holds(x.asks(), nil, nil)
		if returns {
			ask.own.back = of(2000)
		}
		x.knows.lease = ask
		r := x.request(0, 1, x.limits, take(5))
		r.confirmed = true
		answered, left := x.knows.answer([]*request{r})
		if returns != (len(left) == 1) || returns == (len(answered) == 1) {
			t.Errorf("returned: %t; %d answered, %d wait", returns, len(answered), len(left))
		}
		if p := x.knows.plan([]*request{r}); returns != (len(p.actors) == 1 && p.actors[0].admitted) {
			t.Errorf("returned: %t; the plan has %d actors", returns, len(p.actors))
		}
	}
}

// A limit that the bucket is not under any more still has what was leased of it: it is
// refilled, by its own time, before that is closed.
func TestALeaseOfADormantLimit(t *testing.T) {
	w, x := planning(t) // 3 tokens and 2 on lease, at 0
	other := w.member(limiter.PerDay("b", 7))
	other.look()
	if !other.intend(4, 2, limiter.Spend{Limit: "b", Take: 1000}).send() { // a: 7 tokens
		t.Fatal("the change was refused")
	}
	x.limits = other.limits
	x.look()
	p := x.intend(10, x.holds(x.asks(9000, 9000), of(500), of(1500))) // a: 8 there is room for, and 1.5
	got := spelled(p.write.update)
	for _, part := range []string{
		" AND b_a_tk=7000 AND b_a_dz=1 AND b_a_rf=@4000ms AND cg=2 AND b_a_rm=0 AND b_a_h=2000 AND ls_R1='1 a=1jk'\n",
		", b_a_tk=9500, b_a_rm=0, b_a_rf=@10000ms, ls_R1='2 b=4mo'",
		", b_b_h 6000, b_a_h -2000, b_a_tc 500",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the write is not with %q:\n%s", part, got)
		}
	}
	if !p.send() {
		t.Fatal("refused")
	}
	v := w.item()
	if a, b := v.any("a"), v.find("b"); a.state.Tokens != 9500 || a.leased != 0 || !a.dormant || b.leased != 6000 || b.state.Tokens != 0 {
		t.Errorf("left %+v and %+v", a, b)
	}
	if diff := cmp.Diff([]holding{newHolding("R1", "2", []amount{{"b", 6000}})}, v.leases, cmp.AllowUnexported(holding{}, amount{})); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}
