package dynamo

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// leaseHoles are writes that arrive late, to a bucket of which tokens are on lease.
func leaseHoles() []hole {
	outOnLease := func(c clause) bool { return strings.HasSuffix(c.attr, "_"+schema.LimitLeased) }
	slot := func(c clause) bool { return strings.HasPrefix(c.attr, attrHolding) }
	return []hole{
		{
			name: "a refill beside a refund and a first lease",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.tenant(aSecond)
				a.do(0, take(6))
				a.look()
				stale := a.intend(5, 1, take(5)) // 4 stored and 5 due
				b.look()
				b.must(0, leaseAsk{}, refund(5)) // by a clock that is behind
				b.must(0, b.asks(5000))
				return stale
			},
			rule:  without(outOnLease),
			wrong: func(w *scene) bool { return w.balance(5) > 5 },
		},
		{
			name: "a plain take beside a lease that fills the bucket",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.tenant(aSecond)
				a.do(0, take(6))
				a.look()
				stale := a.intend(3, 1, take(2)) // 4 stored and 3 due
				b.look()
				b.must(0, leaseAsk{}, refund(5))
				b.must(0, b.asks(4000)) // 5 and 4 of 10 at 0; at 3 full, and 2 are lost
				return stale
			},
			rule:  without(outOnLease),
			wrong: func(w *scene) bool { return w.balance(3) > 8 },
		},
		{
			name: "a report to a full limit, after another's at the same time",
			prepare: func(w *scene) *planned {
				a, b := w.tenant(aSecond), w.tenant(aSecond)
				w.member(aSecond).do(-1, take(1))
				a.look()
				a.must(0, a.asks(3000))
				b.look()
				b.must(0, b.asks(2000))
				a.look()
				stale := a.intend(0, a.holds(a.asks(), of(1000), nil))
				b.must(0, b.holds(b.asks(), of(2000), nil))
				return stale
			},
			rule:  without(outOnLease),
			wrong: func(w *scene) bool { return w.balance(0) > 7 },
		},
		{
			name: "a return that was done, after another took as much",
			prepare: func(w *scene) *planned {
				a := w.tenant(aSecond)
				w.member(aSecond).do(0, take(5))
				a.look()
				a.must(0, a.asks(2000))
				done := a.intend(0, a.holds(a.asks(), nil, of(2000)))
				if !done.send() {
					w.t.Fatal("the return was refused")
				}
				w.seen = a.id + schema.SlotCount - 1 // of the same slot: the id of the return is overwritten
				b := w.tenant(aSecond)
				b.look()
				b.must(0, b.asks(2000))
				return done
			},
			rule:  without(slot),
			wrong: func(w *scene) bool { return w.corrupt() },
		},
		{
			name: "a return of what was freed meanwhile",
			prepare: func(w *scene) *planned {
				a, b := w.tenant(aSecond), w.tenant(aSecond)
				w.member(aSecond).do(0, take(5))
				a.look()
				a.must(0, a.asks(2000))
				stale := a.intend(0, a.holds(a.asks(), nil, of(2000)))
				b.look()
				ask := b.asks(2000)
				ask.dead = b.knows.view.leases
				b.must(0, ask)
				return stale
			},
			rule:  without(slot),
			wrong: func(w *scene) bool { return w.corrupt() },
		},
	}
}

// corrupt reports whether the item cannot be read.
func (w *scene) corrupt() bool {
	w.t.Helper()
	raw, err := w.rawItem()
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = parseItem(w.table, w.key, raw, nil)
	return err != nil
}

func TestLeaseHoles(t *testing.T) { tryHoles(t, leaseHoles()) }

// A lease lies about while the bucket would have filled up, and is spent at once
// then: it has kept its place, so that no more than the capacity comes out in a burst.
// A report without a refill before it lets the place be filled after the fact.
func TestAParkedLeaseAndABurst(t *testing.T) {
	for _, refills := range []bool{true, false} {
		w := newScene(t)
		limit := limiter.Custom("a", 100, 10, time.Second)
		a, b := w.tenant(limit), w.member(limit)
		b.do(-100, take(1))
		a.look()
		a.must(0, a.asks(50_000))
		burst := int64(50_000) // at 10 s, from the lease
		reported := 10.0
		if !refills {
			reported = 0
		}
		p := a.must(reported, a.holds(a.asks(20_000), of(50_000), nil))
		burst += amountOf(p.plan.step.granted, "a")
		left := w.item().find("a")
		at := refilled(left, milliseconds(10))
		b.do(10, take(float64(at.tokens)/limiter.Milli))
		burst += at.tokens
		if refills != (burst <= 100_000) {
			t.Errorf("refilled first: %t; %d millitokens at once, of 100 tokens", refills, burst)
		}
	}
}

// A report is no reason for more than was there: the same as above for a bucket that is
// full but for what is on lease, by two holders, one of which only looks on.
func TestAReportRefillsFirst(t *testing.T) {
	w := newScene(t)
	a := w.tenant(aSecond)
	w.member(aSecond).do(-100, take(1))
	a.look()
	a.must(0, a.asks(5000))
	a.must(5, a.holds(a.asks(), of(5000), nil))
	if got := w.balance(5); got != 5 {
		t.Errorf("%v tokens after 5 of 10 were spent and reported, want 5", got)
	}
	if got := w.balance(7); got != 7 {
		t.Errorf("%v tokens 2 s later, want 7", got)
	}
}

// A report is a refill to a time that is not before that of what it reports, whatever
// the time of the requests that it goes along with: else what is due until then would
// come on top.
func TestAReportIsNotBeforeWhatWasServed(t *testing.T) {
	w := newScene(t)
	cfg, err := Config{Client: w.db, Table: w.table, Leases: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(cfg, awsdb.Goroutines{}, "R1")
	x := w.tenant(aSecond)
	w.member(aSecond).do(0, take(1))
	x.look()
	x.must(0, x.asks(5000))
	l := s.lanes.shard(w.key.PK).lane(w.key, site{bucket: x.bucket}, 1)
	v := w.item()
	l.knows.learn(v)
	l.holder = holder{
		text: v.leases[0].text, version: v.version, view: v, clock: milliseconds(7), recall: true,
		stocks: []stock{{limit: "a", quantity: 5000, rest: 2000}},
	}
	r, err := newRequest(milliseconds(3), &limiter.Op{Bucket: x.bucket, Limits: x.limits, Generation: 1, Spends: []limiter.Spend{take(4)}})
	if err != nil {
		t.Fatal(err)
	}
	s.ask(l, []*request{r})
	if p := l.knows.plan([]*request{r}); p.step == nil || p.stage.now < milliseconds(7) {
		t.Errorf("a report of what was served at 7 s is made at %v s, by %+v", float64(p.stage.now-simStart)/1000, p.step)
	}
}
