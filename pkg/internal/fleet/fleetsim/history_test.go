package fleetsim_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// history is the record of a simulation: the requests of callers and their answers,
// and the items after every write.
type history struct {
	byKey        map[string]itemOf // buckets and shards by partition key
	byEntity     map[string]*bucket
	refundable   []taken
	adjustments  []*adjusting // under way
	reserved     int          // reservations so far
	calls        []*call      // under way
	held         []held
	released     int64                     // when held was checked
	transactions map[string]bool           // tokens of those that were applied
	applied      map[string]bool           // ids of writes
	refused      map[string]bool           // ids of writes whose sender got the answer that they were not applied
	holders      map[uint32]*process       // of leases, by the replicas that items name
	writer       *process                  // that sent the last update
	written      int64                     // when it sent that; 0 = it is none of requests
	again        string                    // of the write applied last, if it had been applied or refused before: where its id is
	exact        *dynamodb.UpdateItemInput // the write applied last, if it is an exact one of requests
	overfills    map[string][]overfill     // of exact writes to full shards, by the ids of writes

	admitted, denied, failed, late, policy int
	writes                                 int
	seen                                   map[string]int // events, by kind
}

// itemOf is the bucket and the shard of an item.
type itemOf struct {
	bucket *bucket
	shard  int
}

// limitHistory is a limit of a bucket.
type limitHistory struct {
	name     string
	admitted *tally // decided by the store, in time
	all      *tally // with charges and late decisions: the balance at rest is compared with it
	lacks    *shortfall
	usage    consumed
	set      *sinceSet   // nil = it was not
	setting  []*sinceSet // by adjustments that are applied, and not answered
}

// call is a Take under way.
type call struct {
	process  *process
	from     int64
	deadline int64
	canceled bool
	over     bool
	ended    int64 // when it was over
	ops      []limiter.Op
	open     []*openCall // two for each spend
	shares   []openShare // one for each spend
}

// held is a possible take for a call that is not admitted, until it is given back.
type held struct {
	process *process
	limit   *limitHistory
	n       int64
	since   int64
	usage   bool // it counts as consumed until then
	paid    bool // its process has ended, and owed nothing
}

func (f *fleet) failf(format string, args ...any) {
	if f.fault == nil {
		f.fault = fmt.Errorf("after %v: %w", time.Duration(f.now), fmt.Errorf(format, args...))
	}
}

func (f *fleet) beginHistory() {
	f.applied, f.refused, f.transactions = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	f.holders, f.overfills = make(map[uint32]*process), make(map[string][]overfill)
	f.byKey, f.byEntity, f.seen = make(map[string]itemOf), make(map[string]*bucket), make(map[string]int)
	for _, b := range f.buckets {
		for i := range b.keys {
			f.byKey[b.keys[i].PK] = itemOf{b, i}
		}
		f.byEntity[b.key.Entity] = b
		for i := range b.versions[0].Len() {
			name := b.versions[0].At(i).Name
			l := &limitHistory{name: name, admitted: newTally(f.spread), all: newTally(f.spread)}
			l.lacks = &shortfall{leased: f.on.leases && !b.lease.None}
			b.limits = append(b.limits, l)
		}
		b.version(b.versions[0])
		b.versions = b.versions[:1]
	}
}

func (f *fleet) bucket(k limiter.BucketKey) *bucket { return f.byEntity[k.Entity] }

// version records that a bucket's limits change.
func (b *bucket) version(limits *limiter.Limits) {
	b.versions = append(b.versions, limits)
	for _, l := range b.limits {
		if j := limits.Find(l.name); j >= 0 {
			p := limits.Params(j)
			l.admitted.under(p)
			l.all.under(p)
			b.most = max(b.most, p.Capacity)
		}
	}
}

// capacity returns the least capacity that a limit of the bucket has.
func (b *bucket) capacity() int64 {
	limits := b.versions[len(b.versions)-1]
	least := limits.Params(0).Capacity
	for i := range limits.Len() {
		least = min(least, limits.Params(i).Capacity)
	}
	return least
}

func (b *bucket) limit(name string) *limitHistory {
	return b.limits[slices.IndexFunc(b.limits, func(l *limitHistory) bool { return l.name == name })]
}

// asked records that a call begins.
func (f *fleet) asked(p *process, ops []limiter.Op, patience int64) *call {
	c := &call{process: p, from: f.now, deadline: f.now + patience, ops: ops}
	for i := range ops {
		b := f.bucket(ops[i].Bucket)
		b.calls++
		b.twins = b.twins || p.twin
		for j := range ops[i].Spends {
			sp := &ops[i].Spends[j]
			l := b.limit(sp.Limit)
			if sp.Refund > 0 {
				l.gives(sp.Refund)
			}
			extra := int64(0)
			if f.on.adjust {
				extra = b.extra(sp.Limit)
			}
			c.open = append(c.open, l.admitted.begin(f.now, extra), l.all.begin(f.now, extra))
		}
	}
	f.beginShares(c)
	f.calls = append(f.calls, c)
	return c
}

func (l *limitHistory) gives(n int64) {
	l.admitted.gives(n)
	l.all.gives(n)
	if l.set != nil {
		l.set.level += n
	}
	for _, s := range l.setting {
		s.level += n
	}
}

func (l *limitHistory) gave(n int64) { l.admitted.gave(n); l.all.gave(n) }

// answered records the answer to a caller.
func (f *fleet) answered(c *call, admitted bool, err error) {
	c.over, c.ended = true, f.now
	f.calls = slices.DeleteFunc(f.calls, func(other *call) bool { return other == c })
	f.count(c, admitted, err)
	f.tracef("replica %d answers after %v: bucket %s: admitted %t, late %t, %v, %+v", c.process.index, time.Duration(f.now-c.from), c.ops[0].Bucket.Entity, admitted, c.ops[0].Late, err, c.ops[0].Spends)
	f.checkAnswer(c, err)
	if admitted && err == nil && f.now == c.from && !c.ops[0].Late {
		f.checkServed(c)
	}
	n := 0
	for i := range c.ops {
		op := &c.ops[i]
		b := f.bucket(op.Bucket)
		for j := range op.Spends {
			f.end(c, b, op, &op.Spends[j], n, admitted, err)
			n++
		}
	}
}

// end records the answer about a spend.
func (f *fleet) end(c *call, b *bucket, op *limiter.Op, sp *limiter.Spend, n int, admitted bool, err error) {
	l := b.limit(sp.Limit)
	took := err == nil && admitted && sp.Held && b.limitedBy(sp.Limit)
	inTime, all := int64(0), int64(0)
	if took {
		all = sp.Take
		if !op.Late {
			inTime = sp.Take
		}
	}
	if err == nil && !op.Late && sp.Held && b.booksAll(sp.Limit) {
		all += sp.Charge
	}
	l.took(f, b, c, inTime)
	l.admitted.end(c.open[2*n], inTime)
	l.all.end(c.open[2*n+1], all)
	f.endShare(c.process, op, sp, &c.shares[n], admitted, err)
	f.endUsage(c, op, sp, admitted, err)
	if took && op.Late {
		c.process.owes(l, sp.Take)
	}
	switch {
	case sp.Refund > 0 && err == nil && !op.Late:
		l.gave(sp.Refund)
	case sp.Refund > 0: // it may be applied later
		f.held = append(f.held, held{process: c.process, limit: l, n: sp.Refund, since: f.now})
	case !took && sp.Take > 0 && f.now > c.from: // it may be taken, and given back
		l.gives(sp.Take)
		f.held = append(f.held, held{process: c.process, limit: l, n: sp.Take, since: f.now, usage: true})
	}
	if wrong := l.admitted.check(f.now, 0); wrong != nil {
		f.failf("bucket %d, limit %s: admitted %w", b.index, l.name, wrong)
	}
}

// release records the takes that are given back for certain by now: their process owes
// nothing, and no message is that late. It checks now and then.
func (f *fleet) release() {
	if f.now-f.released < second/10 && !f.over {
		return
	}
	f.released = f.now
	late := f.on.lost || f.on.tails || f.on.cut || f.on.outage || f.on.pause || f.on.suspend || f.on.freeze
	f.held = slices.DeleteFunc(f.held, func(h held) bool {
		age := f.now - h.since
		if age < 2*second || age < longestMessage && (late || h.process.ended || h.process.engine.Stats().Owed > 0) {
			return false
		}
		h.limit.gave(h.n)
		return true
	})
	for _, at := range f.replicas {
		at.process.settled()
	}
}

// count counts a decision.
func (f *fleet) count(c *call, admitted bool, err error) {
	switch late := c.ops[0].Late; {
	case err == nil && late:
		f.late++
		f.note("late", int64(c.process.index))
		f.seen[fmt.Sprintf("late, admitted %t", admitted)]++
	case err == nil && admitted:
		f.admitted++
		f.note("admitted", int64(c.process.index))
		if f.now == c.from {
			f.seen["call without a message"]++
		}
	case err == nil:
		f.denied++
		f.note("denied", int64(c.process.index))
	case errors.Is(err, limiter.ErrUnavailable), errors.Is(err, limiter.ErrUncertain), c.process.leaves && errors.Is(err, limiter.ErrClosed):
		f.policy++
		f.note("policy", int64(c.process.index))
	default:
		f.failed++
		f.failf("a call failed with %w", err)
	}
}

// checkServed requires that a call that takes, and was admitted without a message, used leases
// that the items have. None is served that another replica has freed. A machine that stood still
// with both clocks may serve one until replies correct its clock.
func (f *fleet) checkServed(c *call) {
	for i := range c.ops {
		b := f.bucket(c.ops[i].Bucket)
		takes := slices.ContainsFunc(c.ops[i].Spends, func(sp limiter.Spend) bool { return sp.Take > 0 && sp.Held })
		if takes && !b.twins && !c.process.leasesOf(b) && !c.process.untold.outlives(f.now) {
			f.failf("bucket %d: replica %d serves a call, and no item has a lease of it", b.index, c.process.index)
		}
	}
}

// leasesOf reports whether an item of a bucket has a lease of the process.
func (p *process) leasesOf(b *bucket) bool {
	for _, it := range b.items {
		if it == nil {
			continue
		}
		for i := range it.Leases {
			if l := &it.Leases[i]; l.Holds() && p.fleet.holders[l.Replica] == p {
				return true
			}
		}
	}
	return false
}

// checkAnswer requires that a call is answered by its deadline, and that it is late only
// then. The store may count as unavailable only in an outage.
func (f *fleet) checkAnswer(c *call, err error) {
	p := c.process
	if f.now > c.deadline+int64(time.Millisecond) && !f.standsStill() {
		f.failf("replica %d: a call took %v of %v", p.index, time.Duration(f.now-c.from), time.Duration(c.deadline-c.from))
	}
	if c.ops[0].Late && err == nil && f.now < c.deadline && !f.standsStill() {
		f.failf("replica %d: a call was late after %v of %v", p.index, time.Duration(f.now-c.from), time.Duration(c.deadline-c.from))
	}
	if err == nil || c.canceled || f.over || f.standsStill() || c.process.leaves {
		return
	}
	const silence = 900 * int64(time.Millisecond)
	if f.now-c.from >= int64(engine.DefaultBudget) { // no decision takes longer
		return
	}
	if f.now-p.replied < silence && !p.engine.Stats().Open && !f.lossy() {
		f.failf("replica %d: a reply came %v ago, and a call failed after %v: %w", p.index, time.Duration(f.now-p.replied), time.Duration(f.now-c.from), err)
	}
}

// standsStill reports whether processes or their clocks may stand still in the run.
func (f *fleet) standsStill() bool {
	return f.on.pause || f.on.suspend || f.on.freeze || f.on.steps || f.on.drift
}

// lossy reports whether messages may be lost in the run.
func (f *fleet) lossy() bool {
	return f.on.lost || f.on.cut || f.on.outage || f.on.throttle || f.on.parks
}

// lags records that a clock of calls falls behind, and that replies alone can show it. The
// refill that a full bucket does not get in that time may be claimed once more.
func (f *fleet) lags(by int64) {
	f.spread += by
	for _, b := range f.buckets {
		for _, l := range b.limits {
			l.admitted.lags(by)
			l.all.lags(by)
		}
	}
}
