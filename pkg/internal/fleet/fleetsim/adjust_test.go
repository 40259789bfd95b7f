package fleetsim_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// adjusting is an adjustment under way.
type adjusting struct {
	limiter.Adjustment

	process *process
	bucket  *bucket
	limits  []*limitHistory
	began   int64
	added   []int64          // the sum of the shortfalls when it began, without owed tokens
	gift    int64            // millitokens that it may give, by limit
	forced  bool             // leases were out when it was applied
	landed  int64            // when it was applied
	to      map[string]level // the balances that it left, of the limits that all shards had
}

// adjust has a process change the balance of a bucket as an operator does.
func (f *fleet) adjust(p *process, b *bucket) {
	if f.leaping > f.now || p.pausedUntil > f.now || p.ended || b.items[0] == nil || f.adjusting(p, b) != nil {
		return
	}
	limits, _ := p.knows(b)
	whole := limits.Params(0).Capacity
	for i := range limits.Len() {
		whole = min(whole, limits.Params(i).Capacity)
	}
	a := &adjusting{process: p, bucket: b, limits: b.limits, began: f.now}
	a.Bucket, a.Kind = b.key, limiter.AdjustKind(f.r.IntN(4))
	switch a.Kind {
	case limiter.AdjustReset:
		a.gift = b.most
	case limiter.AdjustSet:
		a.Tokens, a.gift = f.r.Int64N(whole+1), b.most
	case limiter.AdjustTopUp:
		a.Tokens, a.Excess = f.r.Int64N(whole/2+1), limiter.ExcessCut
		if f.r.IntN(2) == 0 {
			a.Excess = limiter.ExcessKept
		}
		a.gift = a.Tokens
	case limiter.AdjustTakeOut:
		a.Tokens = f.r.Int64N(whole/2 + 1)
	}
	for _, l := range a.limits {
		a.added = append(a.added, l.lacks.added-f.owed(l)*tallyScale)
		l.gives(a.gift)
	}
	f.adjustments = append(f.adjustments, a)
	f.tracef("replica %d begins %s of bucket %d: %d", p.index, a.Kind.Action(), b.index, a.Tokens)
	p.Start(func() {
		ctx := p.newContext(p.stopped, f.now+int64(catalog.ChangeTimeout))
		of, end := p.balances()
		defer end()
		out, err := of.AdjustBucket(ctx, p.moment(), a.Adjustment)
		f.adjusted(a, &out, err)
	})
}

// balances returns the balances of a process. The catalog's first read of the namespace is not a
// message of the simulation.
func (p *process) balances() (of *engine.Balances, end func()) {
	f := p.fleet
	way := &opening{Items: awsdb.ItemsOf(f.db, simTable)}
	c := catalog.New(catalog.Config{Items: way, Table: simTable, Now: p.machine, Loop: p, Ticks: make(chan time.Time)})
	if _, err := c.NamespaceID(context.Background(), simNamespace); err != nil {
		f.failf("the namespace of an adjustment: %w", err)
	}
	from := p.engine
	way.Items = from.Items()
	return engine.NewBalances(engine.BalancesConfig{
		Items: way, Table: simTable, Buckets: catalog.NewBuckets(c), Engine: func() engine.Observer { return from }, Clock: p.clock, Loop: p, Now: p.machine,
	}), func() { _ = c.Close(context.Background()) }
}

// opening are items that others take the place of, from some moment on.
type opening struct{ awsdb.Items }

// adjusted records the answer to an operator.
func (f *fleet) adjusted(a *adjusting, out *limiter.Adjusted, err error) {
	f.adjustments = slices.DeleteFunc(f.adjustments, func(other *adjusting) bool { return other == a })
	f.tracef("replica %d ends %s of bucket %d: %v, %+v", a.process.index, a.Kind.Action(), a.bucket.index, err, out)
	for i, l := range a.limits {
		y := l.lacks
		y.advance(f.now)
		set := l.ends(a)
		switch {
		case err != nil && !errors.Is(err, limiter.ErrUncertain), err == nil && !out.Found:
			l.gave(a.gift)
		case err != nil:
			f.held = append(f.held, held{process: a.process, limit: l, n: a.gift, since: f.now})
			if a.gift == 0 {
				y.mayTake(f.now, a.Tokens)
			} else if a.Kind == limiter.AdjustSet {
				y.mayTake(f.now, y.params.Capacity)
			}
		default:
			l.gave(a.gift)
			a.applied(f, l, set, y.added-a.added[i])
		}
	}
	took := f.now - a.began
	bound := 2 * f.promptly()
	if f.on.leases {
		bound += leaseSeen
	}
	switch {
	case err != nil:
		f.seen["adjustment failed"]++
	case f.troubled < a.began && took > bound && !f.crowded() && !f.on.shards && !f.on.adopt:
		f.failInTime("bucket %d: %s took %v, which is to be done within %v", a.bucket.index, a.Kind.Action(), time.Duration(took), time.Duration(bound))
	default:
		f.seen[a.Kind.Action()]++
		if slices.ContainsFunc(out.After.Limits, func(l limiter.LimitState) bool { return l.Tokens > l.Limit.Capacity*limiter.Milli }) {
			f.seen["an extra"]++
		}
	}
}

// applied records that an adjustment was applied to a limit, of which added was taken meanwhile. It
// ignores a limit that not all shards had when the adjustment was applied, and a balance that another
// adjustment has set since then: the reply of the first one was lost.
func (a *adjusting) applied(f *fleet, l *limitHistory, set *sinceSet, added int64) {
	y := l.lacks
	to, known := a.to[l.name]
	switch {
	case a.Kind == limiter.AdjustTakeOut:
		y.add(a.Tokens)
	case !known, l.set != nil && l.set.landed > a.landed:
	case a.Kind == limiter.AdjustTopUp:
		if !a.forced {
			y.most = max(y.most-a.Tokens*tallyScale, added)
		}
	default:
		set.from, set.landed = f.now, a.landed
		l.set = set
		y.most = (to.capacity-to.tokens)*tallyScale + added
		if a.forced {
			y.most += to.capacity * tallyScale
		}
	}
}

// sinceSet is the sum taken of a limit since its balance was set.
type sinceSet struct {
	by       *adjusting
	from     int64 // when the operator got the answer
	began    int64
	landed   int64
	capacity int64 // of the limit when it was applied
	level    int64 // millitokens that were there, or could be given yet, and were given since
	taken    int64
}

// took records that a call was admitted. It requires that no more is taken since the balance was
// set than that balance and the refill. Limits that change later may raise the capacity.
func (l *limitHistory) took(f *fleet, b *bucket, c *call, n int64) {
	s := l.set
	if s == nil || c.from < s.from || n == 0 {
		return
	}
	s.taken += n
	y := l.admitted
	most := s.level
	if b.changed >= s.landed {
		most += max(y.capacity-s.capacity, 0)
	}
	ticks := (f.now-s.began)/tallyTick + 1 + y.spread
	if over := (s.taken-most)*tallyScale - y.rate*ticks; over > 0 {
		f.failf("bucket %d, limit %s: %d millitokens too many since it was set to %d", b.index, l.name, over/tallyScale+1, most)
	}
}

// transacted records that a transaction was applied: the adjustment of a bucket.
func (f *fleet) transacted(p *process, in *dynamodb.TransactWriteItemsInput) {
	for i := range in.TransactItems {
		u := in.TransactItems[i].Update
		if u == nil {
			continue
		}
		of, ok := f.byKey[show(u.Key[schema.AttrPK])]
		if !ok {
			continue
		}
		f.writer, f.written, f.again, f.exact = p, 0, "", nil
		before := of.bucket.items[of.shard]
		if a := f.adjusting(p, of.bucket); a != nil && before != nil {
			a.lands(f, before)
		}
		f.look(of.bucket, of.shard)
		f.compare(of.bucket, of.shard, "TransactWriteItems", before, of.bucket.items[of.shard])
		f.writes++
	}
}

// adjusting returns the adjustment of a bucket that a process has under way, nil = none.
func (f *fleet) adjusting(p *process, b *bucket) *adjusting {
	i := slices.IndexFunc(f.adjustments, func(a *adjusting) bool { return a.process == p && a.bucket == b })
	if i < 0 {
		return nil
	}
	return f.adjustments[i]
}

// lands records that an adjustment is applied to a shard, perhaps beside leases.
func (a *adjusting) lands(f *fleet, before *schema.Bucket) {
	a.landed = f.now
	if a.to == nil {
		a.to = a.levels()
		a.sets()
	}
	if before.Line.Rate == schema.Parts && before.Line.Room == schema.Parts {
		return
	}
	a.forced = true
	if a.Kind != limiter.AdjustReset && a.Kind != limiter.AdjustSet {
		return
	}
	f.seen["adjustment beside leases"]++
	for i := range before.Leases {
		holder := f.holders[before.Leases[i].Replica]
		if holder == nil || holder.ended || holder.leaves || holder.twin || holder.lapsed[a.bucket] || !before.Leases[i].Holds() {
			continue
		}
		if well, within := holder.well(a.began, f.now), lookMost+f.promptly(); well > within && a.process.suffered(a.began, f.now) < leaseTrouble {
			f.failInTime("bucket %d: %s does not wait for the lease of replica %d, which had no trouble for %v of %v, and is to return it within %v", a.bucket.index, a.Kind.Action(), holder.index, time.Duration(well), time.Duration(f.now-a.began), time.Duration(within))
		}
	}
}

// sets begins the sums of the limits whose balance the adjustment sets. They count what is given from now on.
func (a *adjusting) sets() {
	if a.Kind != limiter.AdjustReset && a.Kind != limiter.AdjustSet {
		return
	}
	for _, l := range a.limits {
		if to, ok := a.to[l.name]; ok {
			l.setting = append(l.setting, &sinceSet{by: a, began: a.began, capacity: to.capacity, level: to.tokens + to.extra + l.admitted.given/tallyScale - a.gift})
		}
	}
}

// ends returns the sum that an adjustment has begun, nil = none. The adjustment is over.
func (l *limitHistory) ends(a *adjusting) *sinceSet {
	i := slices.IndexFunc(l.setting, func(s *sinceSet) bool { return s.by == a })
	if i < 0 {
		return nil
	}
	s := l.setting[i]
	l.setting = slices.Delete(l.setting, i, i+1)
	return s
}

// level is the capacity of a limit, the balance that a set or a reset gives it, and the extra that a reset leaves
// beside it.
type level struct{ capacity, tokens, extra int64 }

// levels returns those of the limits that all shards have, in millitokens. A shard under older limits
// can have less than its part of the new balance.
func (a *adjusting) levels() map[string]level {
	all := make(map[string]level)
	for _, l := range a.limits {
		if !a.bucket.limitedBy(l.name) {
			continue
		}
		sum := level{}
		for _, it := range a.bucket.items {
			if it == nil || it.Shard.Retired {
				continue
			}
			of := &it.Balances[it.Find(l.name)]
			capacity := of.Share.Capacity
			tokens, extra := capacity, of.Extra()
			if a.Kind == limiter.AdjustSet {
				tokens, extra = min(schema.PartOf(a.Tokens, it.Shard.Index, it.Shard.Level), capacity), 0
			}
			sum = level{sum.capacity + capacity, sum.tokens + tokens, sum.extra + extra}
		}
		all[l.name] = sum
	}
	return all
}

// The messages of a catalog follow.

func (c client) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return sendTo(ctx, c.process, "BatchGetItem", nil, func(ctx context.Context) (*dynamodb.BatchGetItemOutput, error) {
		return c.process.fleet.db.BatchGetItem(ctx, in)
	})
}

func (c client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	f := c.process.fleet
	return sendTo(ctx, c.process, "TransactWriteItems", nil, func(ctx context.Context) (*dynamodb.TransactWriteItemsOutput, error) {
		out, err := f.db.TransactWriteItems(ctx, in)
		if token := aws.ToString(in.ClientRequestToken); err == nil && !f.transactions[token] { // a copy changes nothing
			f.transactions[token] = true
			f.transacted(c.process, in) //nolint:contextcheck // it reads the items beside the simulation
		}
		return out, err
	})
}

// register puts the record of the namespace.
func (f *fleet) register() {
	ns := schema.Namespace{Name: simNamespace, ID: simNamespace}
	if _, err := f.db.PutItem(f.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(simTable), Item: schema.NamespaceItem(schema.NamespaceKey(simNamespace), ns, time.UnixMilli(simStart))}); err != nil {
		f.t.Fatal(err)
	}
}

// A top-up that is under way when a balance is set may be applied after it. So it counts as there, and
// a token more does not.
func TestSetCountsTopUpUnderWay(t *testing.T) {
	const tokens, more = 10_000, 50_000
	for _, tc := range []struct {
		took int64
		want bool // it is a violation
	}{{tokens + more, false}, {tokens + more + 1000, true}} {
		f := &fleet{eventLoop: &eventLoop{}}
		l := &limitHistory{name: "a", admitted: newTally(0), all: newTally(0), lacks: &shortfall{}}
		l.lacks.under(tokenbucket.Params{Capacity: 100_000, Amount: 1, Period: 60_000})
		l.gives(more)
		a := &adjusting{Adjustment: limiter.Adjustment{Kind: limiter.AdjustSet, Tokens: tokens}, limits: []*limitHistory{l}, landed: 1, to: map[string]level{"a": {100_000, tokens, 0}}}
		a.sets()
		a.applied(f, l, l.ends(a), 0)
		l.took(f, &bucket{}, &call{}, tc.took)
		if got := f.fault != nil; got != tc.want {
			t.Errorf("%d millitokens taken: violation %t (%v), want %t", tc.took, got, f.fault, tc.want)
		}
	}
}
