package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fleetHistory is what a simulation of a fleet has seen: what callers asked for and
// were told, and the items after every write.
type fleetHistory struct {
	byKey        map[string]itemOf // buckets and shards by partition key
	byEntity     map[string]*simBucket
	refundable   []taken
	calls        []*fleetCall // under way
	undone       []undone
	applied      map[*dynamodb.UpdateItemInput]bool
	again        bool // what DynamoDB did last it had done before
	reservations int
	settled      map[string]int // how often, by id

	admitted, denied, failed int
	writes                   int
	seen                     map[string]int // what happened to leases and shards
}

// itemOf says of what an item is.
type itemOf struct {
	bucket *simBucket
	shard  int
}

// simBucket is a bucket of a simulation.
type simBucket struct {
	index    int
	fleet    *fleet
	site     site
	keys     [schema.MaxShards]string // partition keys, by shard
	share    int64                    // calls in a second
	policy   limiter.LeasePolicy
	versions []*limiter.Limits // by generation less 1
	limits   []*simLimit
	items    shardItems
	whole    []*oneBucket
	past     []sightOf // of late, the oldest first
	returns  []giveBack
}

// simLimit is a limit of a bucket.
type simLimit struct {
	name     string
	admitted *tally
	lacks    *shortfall
	spent    *tally // with charges; they may be above what there is, so only all that is spent and left is held against it
}

// sightOf is what the items were from a moment on.
type sightOf struct {
	at    int64
	view  *view // of shard 0
	split bool  // there were others
}

// giveBack is what a store gives back by itself of what it took for a call.
type giveBack struct {
	request *request
	limit   *simLimit
	n       int64
	process *process
	until   int64 // when it is over for certain, once that is known
}

// fleetCall is a Take under way.
type fleetCall struct {
	process *process
	from    int64
	ops     []limiter.Op
	open    []*openCall // two for each spend
	shares  []openShare // one for each spend
	books   bool        // charges or refunds
	shards  bool        // the process takes a bucket of it for one of several shards
}

func (f *fleet) failf(format string, args ...any) {
	if f.fault == nil {
		f.fault = fmt.Errorf("after %v: %w", time.Duration(f.now), fmt.Errorf(format, args...))
	}
}

func (f *fleet) beginHistory() {
	f.applied = make(map[*dynamodb.UpdateItemInput]bool)
	f.byKey, f.byEntity, f.settled, f.seen = make(map[string]itemOf), make(map[string]*simBucket), make(map[string]int), make(map[string]int)
	for _, b := range f.buckets {
		for i := range schema.MaxShards {
			b.keys[i] = b.site.shard(i).PK
			f.byKey[b.keys[i]] = itemOf{b, i}
		}
		f.byEntity[b.site.bucket.Entity] = b
		for i := range b.versions[0].Len() {
			b.limits = append(b.limits, &simLimit{name: b.versions[0].At(i).Name, admitted: newTally(f.spread), spent: newTally(f.spread), lacks: &shortfall{limit: b.versions[0].At(i).Name}})
			b.whole = append(b.whole, &oneBucket{name: b.versions[0].At(i).Name})
		}
		b.past = []sightOf{{}}
		b.version(b.versions[0])
		b.versions = b.versions[:1]
	}
}

func isUncertain(err error) bool { return errors.Is(err, limiter.ErrUncertain) }

func (f *fleet) bucket(k limiter.BucketKey) *simBucket { return f.byEntity[k.Entity] }

// version takes down that a bucket's limits change.
func (b *simBucket) version(limits *limiter.Limits) {
	b.versions = append(b.versions, limits)
	for i, l := range b.limits {
		if j := limits.Find(l.name); j >= 0 {
			p := limits.Params(j)
			l.admitted.under(p)
			l.spent.under(p)
			b.whole[i].params.Capacity = max(b.whole[i].params.Capacity, p.Capacity)
			if o := &b.whole[i].params; o.Period == 0 || p.Amount*o.Period > o.Amount*p.Period {
				o.Amount, o.Period = p.Amount, p.Period
			}
		}
	}
}

// capacity returns the least capacity that a limit of the bucket has.
func (b *simBucket) capacity() int64 {
	limits := b.versions[len(b.versions)-1]
	least := limits.Params(0).Capacity
	for i := range limits.Len() {
		least = min(least, limits.Params(i).Capacity)
	}
	return least
}

func (b *simBucket) limit(name string) *simLimit {
	return b.limits[slices.IndexFunc(b.limits, func(l *simLimit) bool { return l.name == name })]
}

// asked takes down that a call begins.
func (f *fleet) asked(p *process, ops []limiter.Op) *fleetCall {
	c := &fleetCall{process: p, from: f.now, ops: ops}
	for i := range ops {
		b := f.bucket(ops[i].Bucket)
		c.shards = c.shards || p.store.forest.find(b.keys[0]) != nil
		for j := range ops[i].Spends {
			sp := &ops[i].Spends[j]
			l := b.limit(sp.Limit)
			if sp.Refund > 0 {
				l.admitted.gives(sp.Refund)
				l.spent.gives(sp.Refund)
			}
			c.open = append(c.open, l.admitted.begin(f.now), l.spent.begin(f.now))
			c.books = c.books || sp.Refund+sp.Charge > 0
		}
	}
	f.beginShares(c)
	return c
}

// answered takes down what a caller was told.
func (f *fleet) answered(c *fleetCall, admitted bool, err error) {
	f.count(c, admitted, err)
	f.endShares(c, true, admitted, err)
	if !admitted && len(c.ops) > 1 || err != nil {
		for i := range c.ops {
			f.bucket(c.ops[i].Bucket).returned(c.process)
		}
	}
	n := 0
	for i := range c.ops {
		b := f.bucket(c.ops[i].Bucket)
		for j := range c.ops[i].Spends {
			sp := &c.ops[i].Spends[j]
			l := b.limit(sp.Limit)
			taken, charged := int64(0), int64(0)
			switch {
			case err != nil:
			case admitted && sp.Held && b.limitedBy(sp.Limit):
				taken = sp.Take
			}
			if err == nil && sp.Held && b.booksAll(sp.Limit) {
				charged = sp.Charge
			}
			if err == nil && sp.Refund > 0 { // else it may be applied later
				l.admitted.gave(sp.Refund)
				l.spent.gave(sp.Refund)
			}
			l.admitted.end(c.open[n], taken)
			l.spent.end(c.open[n+1], taken+charged)
			n += 2
			if wrong := l.admitted.check(f.now, 0); wrong != nil {
				f.failf("bucket %d, limit %s: admitted %w", b.index, l.name, wrong)
			}
			if err == nil && !admitted && sp.Exceeded && !b.lacked(c, &c.ops[i], sp) {
				f.failf("bucket %d, limit %s: %d millitokens denied needlessly, asked for %v before", b.index, l.name, sp.Take, time.Duration(f.now-c.from))
			}
		}
	}
}

// count counts a decision.
func (f *fleet) count(c *fleetCall, admitted bool, err error) {
	switch {
	case err == nil && admitted:
		f.admitted++
		f.note("admitted", int64(c.process.index))
		if f.now == c.from {
			f.seen["call without a message"]++
		}
	case err == nil:
		f.denied++
		f.note("denied", int64(c.process.index))
	default:
		f.failed++
		f.note("failed", int64(c.process.index))
		if errors.Is(err, limiter.ErrInvalid) || errors.Is(err, limiter.ErrClosed) || errors.Is(err, limiter.ErrConflict) {
			f.failf("a call failed with %w", err)
		}
	}
	if f.now-c.from > int64(time.Minute) && c.process.frozen == 0 {
		f.failf("a call took %v", time.Duration(f.now-c.from))
	}
}

// returned takes down what a process has just begun to give back by itself. It waits for
// a lane to begin with it.
func (b *simBucket) returned(p *process) {
	for _, pk := range b.keys {
		l := p.store.lanes.shard(pk).lanes[pk]
		if l == nil {
			continue
		}
		for _, r := range l.queue {
			if r.call != nil || slices.ContainsFunc(b.returns, func(g giveBack) bool { return g.request == r }) {
				continue
			}
			for _, sp := range r.spends {
				g := giveBack{request: r, limit: b.limit(sp.limit), n: sp.give, process: p, until: never}
				g.limit.admitted.gives(g.n)
				g.limit.spent.gives(g.n)
				b.returns = append(b.returns, g)
			}
		}
	}
}

// forget closes what was given back, or never will be.
func (b *simBucket) forget() {
	const longest = int64(30 * time.Second) // that a message is under way
	now := b.fleet.now
	for i := range b.returns {
		g := &b.returns[i]
		switch finished := g.request.state.Load() == finished; {
		case g.until == never && (g.process.ended || finished && g.request.err != nil):
			g.until = now + longest
		case g.until == never && finished:
			g.until = now
		}
	}
	b.returns = slices.DeleteFunc(b.returns, func(g giveBack) bool {
		if g.until > now {
			return false
		}
		g.limit.admitted.gave(g.n)
		g.limit.spent.gave(g.n)
		return true
	})
}

// limitedBy reports whether all shards have a limit. One that is under newer limits without
// it takes nothing of it, and counts as a part of a call all the same.
func (b *simBucket) limitedBy(limit string) bool {
	for _, v := range b.items {
		if v != nil && !v.shard.Retired && v.find(limit) == nil {
			return false
		}
	}
	return true
}

// booksAll reports whether a charge is booked in full for certain: no shard is near
// the floor, where it would be cut.
func (b *simBucket) booksAll(limit string) bool {
	for _, v := range b.items {
		if v == nil || v.shard.Retired {
			continue
		}
		if x := v.any(limit); x != nil && x.state.Tokens < x.floor/2 {
			return false
		}
	}
	return true
}

// late is the time on the fastest clock, in Unix ms.
func (f *fleet) late() int64 { return simStart + (f.now+f.ahead)/int64(time.Millisecond) }

// lags takes down that a clock of calls falls behind, and nothing tells before replies do:
// what a full bucket does not get in that time may be claimed once more.
func (f *fleet) lags(by int64) {
	f.spread += by
	for _, b := range f.buckets {
		for _, l := range b.limits {
			l.admitted.lags(by)
			l.spent.lags(by)
		}
	}
}

// arrived takes down that DynamoDB did what a message asks for.
func (f *fleet) arrived(pk, op string, err error) {
	of, ok := f.byKey[pk]
	_, refused := awsdb.ConditionItem(err)
	if err != nil && !refused {
		f.failf("DynamoDB refuses a message: %w", err)
	}
	f.note(op, int64(of.shard))
	if !ok || op == "GetItem" || err != nil {
		return
	}
	f.writes++
	of.bucket.forget()
	of.bucket.observe()
	before := of.bucket.items[of.shard]
	of.bucket.look(of.shard)
	of.bucket.explain(before, of.bucket.items[of.shard], f.again)
	f.again = false
	of.bucket.check()
	of.bucket.checkShortfalls()
}

// expired takes down that DynamoDB deleted items.
func (f *fleet) expired() {
	f.seen["expired"]++
	for _, b := range f.buckets {
		for i, v := range b.items {
			if v != nil {
				b.look(i)
			}
		}
		b.check()
	}
}

// look reads the item of a shard.
func (b *simBucket) look(shard int) {
	f, k := b.fleet, b.site.shard(shard)
	out, err := f.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(simTable), Key: k.Attributes()})
	if err != nil {
		f.t.Fatal(err)
	}
	before := b.items[shard]
	if b.items[shard] = nil; out.Item != nil {
		var known *limiter.Limits
		if before != nil {
			known = before.limits
		}
		if b.items[shard], err = parseItem(simTable, k, out.Item, known); err != nil {
			f.failf("%w", err)
			return
		}
	}
	b.tell(before, b.items[shard])
	s := sightOf{at: f.now, view: b.items[0]}
	for i, v := range b.items {
		s.split = s.split || v != nil && !v.shard.Retired && (i > 0 || v.shard.Sharded())
	}
	const memory = int64(2 * time.Second)
	if n := len(b.past); n > 1 && f.now-b.past[n/2].at > memory {
		b.past = append(b.past[:0], b.past[n/2:]...)
	}
	b.past = append(b.past, s)
}

// tell counts what a write did to leases and shards.
func (b *simBucket) tell(before, after *view) {
	f := b.fleet
	if before == nil || after == nil {
		return
	}
	for i := range after.leases {
		h := &after.leases[i]
		switch was := before.holding(h.replica); {
		case was == nil:
			f.seen["grant"]++
		case was.text != h.text:
			f.seen["renewal"]++
		}
	}
	for i := range before.leases {
		h := &before.leases[i]
		if after.holding(h.replica) != nil {
			continue
		}
		if f.lives(h.replica) {
			f.seen["lease closed"]++
		} else {
			f.seen["dead lease freed"]++
		}
	}
	switch {
	case after.shard.Level > before.shard.Level:
		f.seen["split"]++
	case after.shard.Level < before.shard.Level:
		f.seen["merge"]++
	case before.version.Hash != after.version.Hash:
		f.seen["limits changed"]++
		if len(after.leases) > 0 {
			f.seen["limits changed under leases"]++
		}
	}
}

// lives reports whether a process runs that leaves leases under a name.
func (f *fleet) lives(name string) bool {
	return slices.ContainsFunc(f.replicas, func(at *replica) bool { return strings.EqualFold(at.process.store.self(), name) })
}

// check holds the items against each other, and what they have against what was spent.
func (b *simBucket) check() {
	f := b.fleet
	if f.fault != nil {
		return
	}
	if err := b.items.check(b.whole); err != nil {
		f.failf("bucket %d: %w", b.index, err)
	}
	gifts := f.refund || f.settle || f.cascade || f.shards
	for i, v := range b.items {
		if v == nil {
			continue
		}
		for j := range v.balances {
			x := &v.balances[j]
			out := int64(0)
			for k := range v.leases {
				out += v.leases[k].of(x.limit.Name)
			}
			if out != x.leased {
				f.failf("bucket %d, shard %d, limit %s: %d millitokens are out on lease, and the slots have %d", b.index, i, x.limit.Name, x.leased, out)
			}
			if !gifts && !b.limit(x.limit.Name).lacks.gifted && x.state.Tokens+x.leased > x.params.Capacity {
				f.failf("bucket %d, shard %d, limit %s: %d millitokens and %d out on lease, of %d", b.index, i, x.limit.Name, x.state.Tokens, x.leased, x.params.Capacity)
			}
		}
	}
	for i, l := range b.limits {
		there := b.items.total(b.whole[i], f.late()) + b.held(l.name)
		if err := l.spent.check(f.now, there); err != nil {
			f.failf("bucket %d, limit %s: with the %d millitokens that are there, %w", b.index, l.name, there, err)
		}
	}
}

// held returns what holders of leases could still give of a limit.
func (b *simBucket) held(limit string) int64 {
	sum := int64(0)
	for _, at := range b.fleet.replicas {
		p := at.process
		for _, l := range p.store.leases.find(&b.site.bucket) {
			if h := &l.holder; h.text != "" && h.alive(p.now(), p.store.era()) && !h.returning() {
				sum += h.restOf(limit)
			}
		}
	}
	return sum
}

// lacked reports whether an item had too little for a spend that was denied at some
// moment of the call, or as long before as a replica may deny by what it saw last.
func (b *simBucket) lacked(c *fleetCall, op *limiter.Op, sp *limiter.Spend) bool {
	f := b.fleet
	need := sp.Take
	if sp.Look {
		need = max(need, limiter.Milli)
	}
	first := c.from - int64(denialSight)
	if p := c.process; p.pausedUntil > first || c.shards {
		return true // what it saw was from before it stopped, or may be of a shard that is no more
	}
	for i := len(b.past) - 1; i >= 0; i-- {
		s := &b.past[i]
		if s.split || s.view == nil && op.Limits.Params(op.Limits.Find(sp.Limit)).Capacity < need {
			return true
		}
		if v := s.view; v != nil {
			if v.version.Hash != op.Limits.Hash() {
				return true // other limits, other bounds
			}
			// A write is decided for a moment from its refill on, and may be sent for long.
			early := simStart + (first-f.spread)/int64(time.Millisecond)
			if x := v.find(sp.Limit); x != nil {
				left := refillIn(x.params, probeQuantum) // for others
				if left > x.params.Capacity/4 {
					left = 0
				}
				if at := refilled(x, max(early, v.refilled)); at.tokens < max(need, left) {
					return true
				}
			}
		}
		if s.at <= first {
			return false
		}
	}
	return false
}

// denialSight is how old what a replica denies by may be: a quantum of a probe, and
// the message that brought it.
const denialSight = probeQuantum + DefaultAttempt
