package fleetsim_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// shortfall is how much a limit can lack of its capacity, by all answers to callers and
// all counted losses. It is the other side of a tally. The items must lack no more, so
// that nothing is lost in silence, charged twice or not given back.
//
// A take counts from its answer on. A take of unknown outcome is open: it counts besides.
// The refill of a leased limit does not count: a part that is full loses it.
type shortfall struct {
	leased  bool
	rate    int64 // scaled, in a tick
	params  tokenbucket.Params
	at      int64                   // tick
	most    int64                   // scaled
	added   int64                   // all that was added to it so far
	open    int64                   // millitokens: may be taken, or be taken yet
	later   []delayed               // in order
	unknown bool                    // the bucket was without the limit for a while
	changes int64                   // of the limit: each rounds
	lifts   [schema.MaxShards]int64 // scaled: the refill that the greatest lift of each shard left out
	moves   bool                    // shards were split or merged: each time a part of a millitoken is rounded
}

// delayed is an amount that may have been taken, and may be taken until a moment. Then it
// counts, or was given back.
type delayed struct {
	until, n int64
	returned bool
}

// longestMessage is how long a message is under way at most.
const longestMessage = 30 * second

// under has the limit be another one.
func (y *shortfall) under(p tokenbucket.Params) {
	if y.params.Period != 0 && y.params != p {
		y.changes++
	}
	y.params, y.rate = p, inTick(p)
}

// inTick returns the refill of a limit in a tick, scaled.
func inTick(p tokenbucket.Params) int64 { return p.Amount * (60_000 / p.Period) }

// changed records that a limit of an item is another one since a moment, which is a while before the time of the
// fastest clock. By that clock the item lacks no more than most, even if that clock's replica took from it while it
// was full. The change takes the refill of that while by the old rate away, and adds that by the new one. A part that
// is full gets none of it.
func (y *shortfall) changed(from, to tokenbucket.Params, since int64) {
	if slower := inTick(from) - inTick(to); slower > 0 || !y.leased {
		y.most = max(y.most+since/tallyTick*slower, 0)
	}
}

// add records that n millitokens more may be missing.
func (y *shortfall) add(n int64) {
	y.most += n * tallyScale
	y.added += n * tallyScale
}

// lift records that a shard was lifted, and what that left out. The next lift finds a full shard.
func (y *shortfall) lift(shard int, scaled int64) { y.lifts[shard] = max(y.lifts[shard], scaled) }

// advance lets time go by.
func (y *shortfall) advance(now int64) {
	tick := now / tallyTick
	if !y.leased {
		y.most = max(y.most-(tick-y.at)*y.rate, 0)
	}
	y.at = tick
	for len(y.later) > 0 && y.later[0].until <= now {
		d := y.later[0]
		y.later = y.later[1:]
		y.open -= d.n
		if !d.returned {
			y.add(d.n)
		}
	}
}

// mayTake has n millitokens be taken at any time, or not.
func (y *shortfall) mayTake(now, n int64) {
	if n > 0 {
		y.open += n
		y.later = append(y.later, delayed{now + longestMessage, n, false})
	}
}

// check returns by how many millitokens the limit lacks more than is explained.
func (y *shortfall) check(now, lacks int64) int64 {
	y.advance(now)
	if y.unknown {
		return 0
	}
	// Rounding, of times to milliseconds too.
	tolerance := (2+y.changes)*tallyScale + y.rate*(2*int64(time.Millisecond)/tallyTick)
	for _, lift := range y.lifts {
		tolerance += lift
	}
	if y.moves {
		tolerance += 64 * tallyScale
	}
	over := lacks*tallyScale - y.most - y.open*tallyScale - tolerance
	return max(0, (over+tallyScale-1)/tallyScale)
}

// openShare is the part of a call that a shortfall counts.
type openShare struct {
	limit  *shortfall
	took   int64 // millitokens, if the call is admitted
	booked int64 // charged
}

// beginShares records the amounts that a call may take or charge.
func (f *fleet) beginShares(c *call) {
	for i := range c.ops {
		b := f.bucket(c.ops[i].Bucket)
		for j := range c.ops[i].Spends {
			sp := &c.ops[i].Spends[j]
			share := openShare{limit: b.limit(sp.Limit).lacks, took: sp.Take, booked: max(sp.Charge-sp.Refund, 0)}
			share.limit.advance(f.now)
			share.limit.open += share.took + share.booked
			c.shares = append(c.shares, share)
		}
	}
}

// endShare records the answer of a process about a spend. Refunds are not counted: they may lie above
// the capacity.
func (f *fleet) endShare(p *process, op *limiter.Op, sp *limiter.Spend, s *openShare, admitted bool, err error) {
	y := s.limit
	y.advance(f.now)
	y.open -= s.took + s.booked
	switch {
	case err != nil && op.KeepTaken:
		y.mayTake(f.now, s.took)
	case err == nil && admitted && sp.Held && op.Late && !y.leased:
		y.open += s.took
		p.late = append(p.late, lateTake{y, s.took, f.now})
	case err == nil && admitted && sp.Held:
		y.add(s.took)
	default: // given back, within a while
		y.mayReturn(f.now, s.took)
	}
	switch {
	case err == nil && sp.Held && !op.Late:
		y.add(s.booked)
	case err == nil && op.Late, errors.Is(err, limiter.ErrUncertain):
		y.mayTake(f.now, s.booked)
	}
}

// mayReturn has n millitokens be taken for a while, and then given back.
func (y *shortfall) mayReturn(now, n int64) {
	if n > 0 {
		y.open += n
		y.later = append(y.later, delayed{now + longestMessage, n, true})
	}
}

// died records that a process ended: it gives back nothing any more, and late admissions
// are not paid.
func (f *fleet) died(p *process) {
	for _, c := range slices.Clone(f.calls) {
		if c.process != p {
			continue
		}
		c.over, c.ended = true, f.now
		f.calls = slices.DeleteFunc(f.calls, func(other *call) bool { return other == c })
		for i := range c.shares {
			y := c.shares[i].limit
			y.open -= c.shares[i].took + c.shares[i].booked
			y.mayTake(f.now, c.shares[i].took+c.shares[i].booked)
		}
		f.interrupted(c)
		n := 0
		for i := range c.ops {
			b := f.bucket(c.ops[i].Bucket)
			for j := range c.ops[i].Spends {
				sp := &c.ops[i].Spends[j]
				l := b.limit(sp.Limit)
				l.admitted.end(c.open[2*n], 0)
				l.all.end(c.open[2*n+1], 0)
				if sp.Refund > 0 {
					f.held = append(f.held, held{process: p, limit: l, n: sp.Refund, since: f.now})
				}
				n++
			}
		}
	}
	for _, h := range f.held {
		if h.process != p || h.paid {
			continue
		}
		h.limit.lacks.mayTake(f.now, h.n)
		if h.usage {
			h.limit.usage.perhaps(h.n)
		}
	}
	p.paysAll()
	for l, n := range p.lateOwed {
		l.all.gives(n)
	}
	p.lateOwed = nil
	p.forgets()
}

// lateTake is a take that was admitted late. A full bucket refills from its write on, and not from its answer.
type lateTake struct {
	limit    *shortfall
	n, since int64
}

// pays records that a write of the process was applied to an item of a bucket. It holds what was admitted late before it
// was sent, in that order, as far as it counts as consumed.
func (p *process) pays(b *bucket, sent int64) {
	for _, l := range b.limits {
		n := max(l.usage.last, 0)
		for i := range p.late {
			if late := &p.late[i]; late.limit == l.lacks && late.since <= sent {
				paid := min(n, late.n)
				n -= paid
				late.pay(paid)
			}
		}
	}
	p.late = slices.DeleteFunc(p.late, func(late lateTake) bool { return late.n == 0 })
}

// pay records that a part of a late take is written. Its limit has been advanced.
func (t *lateTake) pay(n int64) {
	t.n -= n
	t.limit.open -= n
	t.limit.add(n)
}

// paysAll records that the process owes nothing any more.
func (p *process) paysAll() {
	for i := range p.late {
		p.late[i].limit.advance(p.fleet.now)
		p.late[i].pay(p.late[i].n)
	}
	p.late = nil
}

// owes records that a process admitted a call late, and has to take its tokens.
func (p *process) owes(l *limitHistory, n int64) {
	if p.lateOwed == nil {
		p.lateOwed = make(map[*limitHistory]int64)
	}
	p.lateOwed[l] += n
}

// owed returns the late admissions of a limit that may not be taken yet, in millitokens.
func (f *fleet) owed(l *limitHistory) (sum int64) {
	for _, at := range f.replicas {
		sum += at.process.lateOwed[l]
	}
	for _, p := range f.leaving {
		sum += p.lateOwed[l]
	}
	return sum
}

// settled forgets the debts of a process, if it owes nothing now.
func (p *process) settled() {
	if len(p.lateOwed)+len(p.late) > 0 && p.engine.Stats().Owed == 0 {
		clear(p.lateOwed)
		p.paysAll()
	}
	if s := p.engine.Stats(); s.Owed == 0 && s.Leases == 0 {
		clear(p.uncounted)
	}
}

// A rate that falls as of a slow clock takes the refill since then away, up to the time of the fastest clock. A millitoken
// more is lost. A rate that rises adds that refill, but not to a full part.
func TestAChangedRate(t *testing.T) {
	const lacked, perSecond = 5000, 100 // millitokens
	for name, tc := range map[string]struct {
		from, to int64 // millitokens in a second
		leased   bool
		lost     int64
	}{
		"it falls to none":     {perSecond, 0, false, 30},
		"it falls by half":     {perSecond, perSecond / 2, false, 15},
		"it rises":             {0, perSecond, false, -30},
		"it falls, with parts": {perSecond, 0, true, 30},
		"it rises, with parts": {0, perSecond, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fleet{eventLoop: &eventLoop{now: 10 * second}, ahead: 200 * int64(time.Millisecond)}
			y := &shortfall{leased: tc.leased}
			b := &bucket{limits: []*limitHistory{{name: "a", lacks: y}}}
			before, after := itemOfRate(t, tc.from, 9*second), itemOfRate(t, tc.to, f.now-100*int64(time.Millisecond))
			f.underLimits(b, nil, before)
			y.add(lacked)
			f.underLimits(b, before, after)
			const rounded = 3 // of them one by the change
			explained := lacked + tc.lost + rounded
			if over := y.check(f.now, explained); over != 0 {
				t.Errorf("%d millitokens are missing: %d of them without a cause, want none", explained, over)
			}
			if over := y.check(f.now, explained+1); over != 1 {
				t.Errorf("%d millitokens are missing: %d of them without a cause, want one", explained+1, over)
			}
		})
	}
}

// itemOfRate returns an item under one limit since a moment.
func itemOfRate(t *testing.T, perSecond, at int64) *schema.Bucket {
	limits, err := limiter.NewLimits(limiter.Custom("a", 100+perSecond, 0, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	p := tokenbucket.Params{Capacity: limits.Params(0).Capacity, Amount: perSecond, Period: 1000}
	it := &schema.Bucket{At: simStart + at/int64(time.Millisecond), Line: schema.WholeLine(), Shard: schema.Shard{Level: 1}}
	it.Version.Hash, it.Balances = limits.Hash(), []schema.Balance{{Limit: limits.At(0), Whole: p, Share: p}}
	return it
}

// A lift leads up to its bound. The refill from now to there is missing, but for no longer than a lift may be.
func TestALiftLeavesRefillOut(t *testing.T) {
	const perSecond, full = 100, 1000
	for name, tc := range map[string]struct {
		update, condition string
		ahead             int64 // ms
		lost              int64 // millitokens
	}{
		"a lift":              {"SET #10=:11", "#10<=:10", 150, 15},
		"a lift back in time": {"SET #10=:11", "#10<=:10", -150, 0},
		"a lift beyond all":   {"SET #10=:11", "#10<=:10", 5000, full / liftPart},
		"a busy take":         {"ADD #10 :11", "#10<=:10", 150, 0},
		"an exact write":      {"SET #10=:11", "#11=:10", 150, 0},
	} {
		t.Run(name, func(t *testing.T) {
			y := &shortfall{leased: true}
			f := &fleet{eventLoop: &eventLoop{now: 10 * second}}
			b := &bucket{limits: []*limitHistory{{name: "a", lacks: y}}}
			it := itemOfRate(t, perSecond, f.now)
			it.Balances[0].Share.Capacity = full
			b.items[0] = it
			f.byKey = map[string]itemOf{"pk": {b, 0}}
			bound := schema.Product(perSecond*schema.Parts, simStart+f.now/int64(time.Millisecond)+tc.ahead)
			f.lifted(&dynamodb.UpdateItemInput{
				Key:              map[string]types.AttributeValue{schema.AttrPK: &types.AttributeValueMemberS{Value: "pk"}},
				UpdateExpression: &tc.update, ConditionExpression: &tc.condition,
				ExpressionAttributeNames:  map[string]string{"#10": schema.LimitAttr("a", schema.LimitFullAt), "#11": schema.AttrSerial},
				ExpressionAttributeValues: map[string]types.AttributeValue{":10": bound.Attribute(), ":11": bound.Attribute()},
			})
			if got := y.lifts[0] / tallyScale; got != tc.lost {
				t.Errorf("%d millitokens are missing, want %d", got, tc.lost)
			}
		})
	}
}

// A take that was admitted late is missing in full when it is written, and refilled from then on.
func TestALateTakeIsRefilledFromItsWrite(t *testing.T) {
	const perSecond, took, rounded = 100, 1000, 2
	y := &shortfall{}
	y.under(tokenbucket.Params{Capacity: 10_000, Amount: perSecond, Period: 1000})
	l := &limitHistory{name: "a", lacks: y}
	f := &fleet{eventLoop: &eventLoop{}}
	p, b := &process{fleet: f}, &bucket{limits: []*limitHistory{l}}
	sp := &limiter.Spend{Limit: "a", Take: took, Held: true}
	share := &openShare{limit: y, took: took}
	y.open = took
	f.endShare(p, &limiter.Op{Late: true}, sp, share, true, nil)
	for _, step := range []struct{ at, sent, counts, lacks int64 }{
		{second, -1, took, took},        // a write that was sent before the answer
		{2 * second, second, 400, took}, // a part of it
		{3 * second, 2 * second, 0, 900},
		{4 * second, 3 * second, took, 800}, // the rest of it
		{5 * second, 4 * second, took, 700},
	} {
		f.now, l.usage.last = step.at, step.counts
		y.advance(f.now)
		p.pays(b, step.sent)
		want := step.lacks + rounded
		if over := y.check(f.now, want+1); y.check(f.now, want) != 0 || over != 1 {
			t.Errorf("at %v %d millitokens are missing: %d of them without a cause, want one", time.Duration(f.now), want+1, over)
		}
	}
}
