package dynamo

import (
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/clocktest"
	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// grove is a bucket whose shards a test changes one by one.
type grove struct {
	t     *testing.T
	store *Store
	db    *dynamofake.DB
	site  site
	wall  time.Time
}

func newGrove(t *testing.T) *grove {
	t.Helper()
	g := &grove{t: t, db: dynamofake.New(), site: site{ns: "ns", bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}, wall: time.UnixMilli(simStart)}
	if _, err := g.db.CreateTable(t.Context(), TableInput("buckets")); err != nil {
		t.Fatal(err)
	}
	cfg, err := Config{Client: g.db, Table: "buckets", Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return g.wall }}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g.store = &Store{cfg: cfg, loop: awsdb.Goroutines{}, client: g.db, stopped: t.Context(), replica: "r", slots: 1}
	g.store.lanes.init(laneShards * schema.MaxShards)
	return g
}

// lane returns the lane of a shard, which nobody else runs.
func (g *grove) lane(index int) *lane {
	k := g.site.shard(index)
	l := g.store.lanes.shard(k.PK).lane(k, g.site, schema.MaxShards)
	l.start()
	return l
}

// see reads a shard's item.
func (g *grove) see(index int) *view {
	g.t.Helper()
	v, err := g.store.sight(g.lane(index))
	if err != nil || v == nil {
		g.t.Fatalf("shard %d: %v, %v", index, v, err)
	}
	return v
}

// ask has a request admitted by a shard, seconds after the start, under the limits of
// a generation.
func (g *grove) ask(index int, seconds float64, generation uint64, limits *limiter.Limits, spends ...limiter.Spend) {
	g.t.Helper()
	at := milliseconds(seconds)
	r, err := newRequest(at, &limiter.Op{Bucket: g.site.bucket, Limits: limits, Generation: generation, Spends: spends})
	if err != nil {
		g.t.Fatal(err)
	}
	r.site, r.key, r.expires = g.site, g.site.shard(index), g.wall.Add(time.Hour)
	r.call = &call{done: make(chan struct{})}
	r.call.left.Store(1)
	l := g.lane(index)
	for pending := []*request{r}; len(pending) > 0; {
		if pending = l.answer(pending); len(pending) > 0 {
			pending = g.store.step(l, pending)
		}
	}
	if r.err != nil || !r.admitted {
		g.t.Fatalf("admitted %t, %v: %+v", r.admitted, r.err, spends)
	}
}

// change applies a change to a shard as it is.
func (g *grove) change(index int, change func(l *lane, v *view) bool) {
	g.t.Helper()
	v := g.see(index)
	if l := g.lane(index); !change(l, v) {
		g.t.Fatalf("shard %d was not changed: %+v", index, l.knows.view)
	}
}

// splitOff splits the first shard.
func (g *grove) splitOff() {
	g.t.Helper()
	s := g.store
	g.change(0, func(l *lane, v *view) bool {
		return s.reshape(l, splitInput(s.cfg.Table, l.key, s.nextID(v), v, s.lately(l), 1))
	})
}

// finish makes the other half of that.
func (g *grove) finish() {
	g.t.Helper()
	g.change(0, func(l *lane, _ *view) bool { g.store.finish(l); return !l.knows.view.shard.Moving })
}

func (g *grove) retire(index int) {
	g.t.Helper()
	s := g.store
	g.change(index, func(l *lane, v *view) bool { return s.reshape(l, retireInput(s.cfg.Table, l.key, v, s.lately(l))) })
}

func (g *grove) absorb(index int) {
	g.t.Helper()
	found := g.see(index)
	g.change(schema.Heir(index), func(l *lane, _ *view) bool {
		return g.store.absorb(l, chore{what: choreAbsorb, index: index, found: found})
	})
}

func (g *grove) at(seconds float64) { g.wall = time.UnixMilli(milliseconds(seconds)) }

// tokens returns what a shard has of a limit, in tokens.
func (g *grove) tokens(index int, limit string, seconds float64) float64 {
	g.t.Helper()
	v := g.see(index)
	b := v.any(limit)
	if b == nil {
		g.t.Fatalf("shard %d has no limit %s", index, limit)
	}
	at := refilled(b, v.at(milliseconds(seconds)))
	return float64(at.tokens) / limiter.Milli
}

// forget is what happens when another replica goes on: it knows nothing of what was.
func (g *grove) forget() { g.store.lanes.init(laneShards * schema.MaxShards) }

func limitsFor(t *testing.T, limits ...limiter.Limit) *limiter.Limits {
	t.Helper()
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// From a merge on one shard refills for both. What the other one had got before, and
// what one of them had no room for, is not refilled once more, by whatever clock.
func TestAMergeRefillsFromThenOn(t *testing.T) {
	limits := limitsFor(t, aSecond) // 10, 1 a second
	for _, tc := range []struct {
		name     string
		use      func(g *grove)
		at, want float64
	}{
		{"the other one was refilled later", func(g *grove) {
			g.ask(1, 0, 1, limits, take(4))
			g.ask(1, 100, 1, limits, take(5))
		}, 100, 5},
		{"the other one was full when this one was taken from", func(g *grove) {
			g.ask(0, 0, 1, limits, take(4))
			g.ask(0, 7, 1, limits, take(1)) // of what is stored
		}, 7, 8.5},
		{"this one was full when the other one was taken from", func(g *grove) {
			g.ask(1, 0, 1, limits, take(4))
			g.ask(1, 7, 1, limits, take(1))
		}, 7, 8.5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGrove(t)
			g.ask(0, 0, 1, limits, take(0.001))
			g.splitOff()
			g.finish()
			tc.use(g)
			g.forget()
			g.retire(1)
			g.forget()
			g.absorb(1)
			if got := g.tokens(0, "a", tc.at); got > tc.want || got < tc.want-0.002 {
				t.Errorf("%v tokens at %v s, want %v", got, tc.at, tc.want)
			}
		})
	}
}

// Limits may change while the other half of a split is not made. What was set aside
// of them goes on counting, and a limit that comes then is full in both halves.
func TestLimitsChangeWhileASplitIsUnderWay(t *testing.T) {
	a, b := limiter.PerDay("a", 10), limiter.PerDay("b", 20)
	for _, tc := range []struct {
		name         string
		first, then  *limiter.Limits
		limit        string
		stays, whole float64
	}{
		{"one goes that is full", limitsFor(t, a, b), limitsFor(t, a), "b", 10, 20},
		{"one goes that is not", limitsFor(t, a, b), limitsFor(t, b), "a", 4, 8},
		{"one comes", limitsFor(t, a), limitsFor(t, a, b), "b", 10, 20},
		{"one is lower", limitsFor(t, a, b), limitsFor(t, limiter.PerDay("a", 6), b), "a", 3, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGrove(t)
			g.ask(0, 0, 1, tc.first, take(2))
			g.splitOff()
			g.forget()
			g.lane(0).rest = g.wall.Add(time.Hour) // it could not be made
			g.ask(0, 0, 2, tc.then, limiter.Spend{Limit: tc.then.At(0).Name, Take: 1})
			g.finish()
			both := limitsFor(t, a, b)
			if tc.name == "one is lower" {
				both = tc.then
			}
			for i := range 2 {
				g.ask(i, 0, 3, both, limiter.Spend{Limit: tc.limit, Take: 1})
			}
			got := g.tokens(0, tc.limit, 0)
			if sum := got + g.tokens(1, tc.limit, 0); got > tc.stays || got < tc.stays-0.01 || sum > tc.whole || sum < tc.whole-0.01 {
				t.Errorf("%v tokens of %s stay, %v in both halves; want %v and %v", got, tc.limit, sum, tc.stays, tc.whole)
			}
		})
	}
}

// Whoever comes back after a day, with a split that was not finished when it left,
// makes no shard of it: that was made and used, and is gone by now.
func TestAnOldSplitIsNotFinished(t *testing.T) {
	g := newGrove(t)
	limits := limitsFor(t, limiter.PerDay("a", 10))
	g.ask(0, 0, 1, limits, take(2))
	g.splitOff()
	away := g.lane(0)
	g.forget()
	g.finish()
	g.ask(1, 0, 1, limits, take(4))
	g.retire(1)
	k := g.site.shard(1)
	if _, err := g.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("buckets"), Key: k.Attributes()}); err != nil {
		t.Fatal(err)
	}
	g.at(25 * 3600)
	g.store.tendOnce(away)
	if v, err := g.store.read(g.lane(1), awsdb.MayPass); err != nil || v != nil {
		t.Errorf("shard 1: %+v, %v; want none", v, err)
	}
	if away.knows.view.shard.Moving {
		t.Error("the split is still taken for unfinished")
	}
}

// A split that cannot be finished is let be for a while, whatever else there is to do:
// in an outage every try fails at once, and a lane would go round in a circle.
func TestASplitThatCannotBeFinishedIsLetBe(t *testing.T) {
	g := newGrove(t)
	g.ask(0, 0, 1, limitsFor(t, limiter.PerDay("a", 10)), take(2))
	g.splitOff()
	l := g.lane(0)
	l.todo = append(l.todo, chore{what: choreLook})
	g.db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
		if c.Op == "PutItem" {
			return dynamofake.Fault{Kind: dynamofake.Throttle}
		}
		return dynamofake.Fault{}
	})
	before := g.db.Count("PutItem")
	for range 100 {
		g.store.step(l, nil)
	}
	if n := g.db.Count("PutItem") - before; n != 1 || len(l.todo) > 0 {
		t.Errorf("tried %d times, %d chores left; want once, and none", n, len(l.todo))
	}
	g.db.SetPlan(nil)
	g.at(2)
	if g.store.step(l, nil); l.knows.view.shard.Moving {
		t.Error("the split is not finished afterwards")
	}
}

// A split is not finished from a view of long ago, by either reading of the clock, nor
// from one of before the clock's correction jumped: the item is read first.
func TestASplitIsNotFinishedFromAnOldView(t *testing.T) {
	for _, test := range []struct {
		name  string
		pass  func(m *clocktest.Machine, c *Clock)
		reads int
	}{
		{"at once", func(*clocktest.Machine, *Clock) {}, 0},
		{"nearly old", func(m *clocktest.Machine, _ *Clock) { m.Pass(choreView) }, 0},
		{"old, and the time was set back", func(m *clocktest.Machine, _ *Clock) { m.Pass(choreView + 1); m.Set(-24 * time.Hour) }, 1},
		{"after a sleep", func(m *clocktest.Machine, _ *Clock) { m.Pass(time.Second); m.Set(choreView) }, 1},
		{"after a pause", func(m *clocktest.Machine, c *Clock) {
			for _, ahead := range []time.Duration{0, 5 * time.Second, 5 * time.Second, 5 * time.Second} {
				c.Observe(m.Now(), m.Now(), m.Now().Add(ahead))
			}
		}, 1},
	} {
		g := newGrove(t)
		g.ask(0, 0, 1, limitsFor(t, limiter.PerDay("a", 10)), take(2))
		m := &clocktest.Machine{Wall: g.wall.UnixNano(), Mono: 1}
		c := NewClock(m.Now, 0)
		g.store.cfg.Now, g.store.cfg.Clock = m.Now, c
		g.splitOff()
		test.pass(m, c)
		l := g.lane(0)
		reads, puts := g.db.Count("GetItem"), g.db.Count("PutItem")
		for l.knows.view.shard.Moving {
			g.store.tendOnce(l)
			if first := g.db.Count("GetItem") - reads; first != test.reads {
				t.Fatalf("%s: read %d times before anything else, want %d", test.name, first, test.reads)
			}
		}
		if n := g.db.Count("PutItem") - puts; n != 1 {
			t.Errorf("%s: the new shard was made %d times", test.name, n)
		}
	}
}

// Who still takes a split for unfinished does not set anything aside again.
func TestLimitsChangeAfterASplitWasFinished(t *testing.T) {
	both, one := limitsFor(t, limiter.PerDay("a", 10), limiter.PerDay("b", 10)), limitsFor(t, limiter.PerDay("a", 10))
	g := newGrove(t)
	g.ask(0, 0, 1, both, take(2))
	g.splitOff()
	away := g.lane(0).knows
	g.forget()
	g.finish()
	l := g.lane(0)
	l.knows, l.seen, l.rest = away, g.wall, g.wall.Add(time.Hour)
	g.ask(0, 0, 2, one, take(1))
	v := g.see(0)
	for i := range v.balances {
		if b := &v.balances[i]; b.moving != 0 {
			t.Errorf("%d millitokens of %s are set aside; the split is unfinished: %t", b.moving, b.limit.Name, v.shard.Moving)
		}
	}
}

// A merge loses nothing of a limit that the bucket is not under for a while, whether
// it is the one shard that has forgotten it, as it was full, or the other.
func TestAMergeKeepsLimitsThatAreAway(t *testing.T) {
	both, one := limitsFor(t, limiter.PerDay("a", 10), limiter.PerDay("b", 10)), limitsFor(t, limiter.PerDay("b", 10))
	for used := range 2 {
		g := newGrove(t)
		g.ask(0, 0, 1, both, limiter.Spend{Limit: "a", Charge: 1})
		g.splitOff()
		g.finish()
		g.ask(used, 60, 1, both, take(2)) // a millitoken is back by then
		for i := range 2 {
			g.ask(i, 60, 2, one, limiter.Spend{Limit: "b", Take: 1})
		}
		g.at(60)
		g.retire(1)
		g.absorb(1)
		g.ask(0, 60, 3, both, limiter.Spend{Limit: "b", Take: 1})
		if got := g.tokens(0, "a", 60); got < 7.999 || got > 8.002 {
			t.Errorf("2 taken from shard %d, %v of 10 left", used, got)
		}
	}
}

// A shard that is retired is absorbed at once, not when somebody asks for it: until
// then its part of the limit is given by none.
func TestARetiredShardIsAbsorbedAtOnce(t *testing.T) {
	g := newGrove(t)
	g.ask(0, 0, 1, limitsFor(t, aSecond), take(2))
	g.splitOff()
	g.finish()
	g.see(1)
	g.wall = g.wall.Add(DefaultQuiet)
	l := g.lane(1)
	l.todo = []chore{{what: choreRetire}}
	g.store.tendOnce(l)
	heir := g.lane(0)
	heir.todo = heir.chores
	for len(heir.todo) > 0 {
		g.store.tendOnce(heir)
	}
	if s := g.see(0).shard; s.Sharded() {
		t.Errorf("the first shard is one of %d still", s.Level)
	}
}
