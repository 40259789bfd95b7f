package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// shardHistory is what a simulation of shards knows from the outside: the items after
// every change, and one bucket beside them, for which every change is made at once.
type shardHistory struct {
	items   shardItems
	whole   []*oneBucket // of the limits that the bucket began with
	commits []commit
	carried map[*request]bool // they are in a write that was applied
	calls   []*shardCall
	last    [schema.MaxShards]int64 // moment of the latest commit of a shard
	fault   error
	account account
	// Counted for the log.
	admitted, denied, failed int
	shapes                   map[string]int
}

// shardItems are the items of a bucket, by shard; nil = there is none.
type shardItems [schema.MaxShards]*view

// oneBucket is a limit of a bucket that has one shard and no faults.
type oneBucket struct {
	name   string
	params tokenbucket.Params
	begun  int64
}

// commit is what a write took or gave of a limit. What it took counts for the moment
// that it was planned for, and what it gave for the first one from then on that is not
// before what the shard had done already: both lie within the calls that it decided.
type commit struct {
	limit    string
	at       int64
	taken    int64
	admitted int64 // of what was taken; the rest are charges
	given    int64
	from, to int64 // when it can have been
}

func (s *shardSim) failf(format string, args ...any) {
	if s.fault == nil {
		s.fault = fmt.Errorf(format, args...)
	}
}

func (s *shardSim) begin() {
	s.carried, s.shapes, s.account = make(map[*request]bool), make(map[string]int), newAccount()
	limits := s.versions[0]
	for i := range limits.Len() {
		p := limits.Params(i)
		s.whole = append(s.whole, &oneBucket{name: limits.At(i).Name, params: p, begun: s.now + slices.Min(s.skews)})
	}
}

// late is the time on the fastest clock.
func (s *shardSim) late() int64 { return s.now + slices.Max(s.skews) }

// has returns what the bucket has after what was taken and given, in parts of a period.
func (o *oneBucket) has(commits []commit, now int64) int64 {
	most, at := o.params.Capacity*o.params.Period, o.begun
	tokens := most
	refill := func(to int64) {
		tokens, at = min(tokens+(to-at)*o.params.Amount, most), to
	}
	for _, c := range commits {
		if c.limit == o.name {
			refill(c.at)
			tokens = min(tokens+c.given*o.params.Period, most) - c.taken*o.params.Period
		}
	}
	refill(now)
	return tokens
}

// commit takes down what a write took and gave, in the order of the moments.
func (s *shardSim) commit(c commit) {
	i := len(s.commits)
	for i > 0 && s.commits[i-1].at > c.at {
		i--
	}
	s.commits = slices.Insert(s.commits, i, c)
}

// look reads a shard's item.
func (s *shardSim) look(index int) {
	k := s.site.shard(index)
	out, err := s.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(simTable), Key: k.Attributes()})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.items[index] = nil; out.Item == nil {
		return
	}
	if s.items[index], err = parseItem(simTable, k, out.Item, nil); err != nil {
		s.failf("%v", err)
	}
}

// expired takes down which items are gone. A debt that a retired shard had is
// forgotten with it.
func (s *shardSim) expired() {
	debts := make([]int64, len(s.whole))
	for i, o := range s.whole {
		debts[i] = s.total(o)
	}
	for i := range s.items {
		tomb := s.items[i] != nil && s.items[i].shard.Retired
		if s.items[i] == nil {
			continue
		}
		s.look(i)
		for j, o := range s.whole {
			if now := s.total(o); tomb && now > debts[j] {
				s.commit(commit{limit: o.name, at: s.late(), given: now - debts[j], from: s.late(), to: s.late()})
			}
		}
	}
	s.check()
}

// applied takes down what a write did, and holds the items against the one bucket.
func (s *shardSim) applied(m *shardMessage) {
	before := s.items[m.index]
	had := make([]int64, len(s.whole))
	for i, o := range s.whole {
		had[i] = s.total(o)
	}
	if s.look(m.index); s.fault != nil {
		return
	}
	given := s.fits(m.actors, before, s.items[m.index])
	s.shapes[s.shapeOf(m, before)]++
	moment := max(m.moment, s.items[m.index].refilled)
	s.last[m.index] = max(s.last[m.index], moment)
	if _, refused := awsdb.ConditionItem(m.err); refused { // the reply has come: this is a copy
		s.account.applied[m] = true
	}
	if err := s.account.did(m, m.actors); err != nil {
		s.failf("%v", err)
	}
	for _, a := range m.actors {
		s.carried[a.request] = true
		s.commit(commit{limit: a.limit, at: moment, taken: a.taken, admitted: a.admitted, from: moment, to: s.late()})
		s.commit(commit{limit: a.limit, at: s.last[m.index], given: a.given, from: moment, to: s.late()})
		for i, o := range s.whole {
			if o.name == a.limit {
				had[i] += given[o.name] - a.taken
				given[o.name] = 0
			}
		}
	}
	if s.check(); s.adopt || s.ttl || s.fault != nil {
		return
	}
	for i, o := range s.whole {
		if now := s.total(o); now < had[i]-s.mayLose(o, before, s.items[m.index]) {
			s.failf("limit %s: a write to shard %d left %d millitokens, less than %d: lost for good", o.name, m.index, now, had[i])
		}
	}
}

// fits returns what is given to a shard, as far as it has room.
func (s *shardSim) fits(actors []effect, before, after *view) map[string]int64 {
	given := make(map[string]int64)
	for _, a := range actors {
		given[a.limit] += a.given
	}
	for limit := range given {
		var x *balance
		if before != nil && after != nil && before.shard.Epoch == after.shard.Epoch && before.version == after.version {
			x = before.find(limit)
		}
		if x == nil {
			given[limit] = 0 // not asked where shards or limits change
			continue
		}
		given[limit] = roomFor(x, given[limit], s.late())
	}
	return given
}

// shapeOf names what a write did.
func (s *shardSim) shapeOf(m *shardMessage, before *view) string {
	after := s.items[m.index]
	switch {
	case before == nil && m.index == 0:
		return "create"
	case before == nil || before.shard.Retired:
		return "make"
	case after.shard.Retired:
		return "retire"
	case after.shard.Level > before.shard.Level:
		return "split to " + strconv.Itoa(after.shard.Level)
	case after.shard.Level < before.shard.Level:
		if s.items[before.shard.Other().Index] == nil {
			return "absorb what is missing"
		}
		return "absorb"
	case before.shard.Moving && !after.shard.Moving:
		return "clear"
	case before.version.Hash != after.version.Hash:
		return "swap"
	}
	return "write"
}

// mayLose returns how much of a limit a write may lose: what is less than a
// millitoken, and, where shard changes, what it would have refilled while the write
// was under way.
func (s *shardSim) mayLose(o *oneBucket, before, after *view) int64 {
	if before == nil || after == nil || before.shard.Epoch == after.shard.Epoch {
		return 1
	}
	p := before.shard.Share(o.params)
	lost, _ := dueAt(tokenbucket.Bucket{Refilled: after.refilled}, p, s.late())
	for _, b := range after.balances {
		if b.limit.Name == o.name {
			lost += max(0, b.state.Tokens-b.room()) // given while a split was under way
		}
	}
	return lost + 2
}

// total returns what all shards have of a limit at a time, with what is on the way
// between them.
func (items *shardItems) total(o *oneBucket, now int64) int64 {
	sum := int64(0)
	for i, v := range items {
		switch {
		case v == nil && i == 0:
			sum += o.params.Capacity
		case v == nil:
		case v.shard.Retired:
			if items.awaited(v) {
				sum += v.has(o, v.refilled)
			}
		default:
			sum += v.has(o, now)
			if v.shard.Moving && !items.made(v) {
				sum += v.sets(o)
			}
		}
	}
	return sum
}

func (s *shardSim) total(o *oneBucket) int64 { return s.items.total(o, s.late()) }

func (s *shardSim) awaited(v *view) bool { return s.items.awaited(v) }

// has returns what a shard has of a limit: all of its share where it holds none of it.
func (v *view) has(o *oneBucket, now int64) int64 {
	b := v.any(o.name)
	if b == nil {
		return v.shard.Share(o.params).Capacity
	}
	at := refilled(b, max(now, b.state.Refilled))
	return at.tokens
}

// sets returns what a shard has set aside of a limit.
func (v *view) sets(o *oneBucket) int64 {
	if b := v.any(o.name); b != nil {
		return b.moving
	}
	other := v.shard.Other()
	return other.Share(o.params).Capacity
}

// made reports whether the other half of a shard's last split was made.
func (items *shardItems) made(v *view) bool {
	other := v.shard.Other()
	item := items[other.Index]
	return item != nil && item.shard.Epoch >= other.Epoch
}

// awaited reports whether the heir of a retired shard will take what it has.
func (items *shardItems) awaited(v *view) bool {
	to := items[schema.Heir(v.shard.Index)]
	born := schema.BornAt(v.shard.Index)
	return to != nil && to.shard.Level >= born && to.shard.Births[schema.BirthSlot(born)] == v.shard.Birth
}

// check holds the items against each other and against the one bucket.
func (s *shardSim) check() {
	if s.checkTree(); s.adopt || s.fault != nil {
		return
	}
	for _, o := range s.whole {
		if sum, most := s.total(o), o.has(s.commits, s.late()); sum*o.params.Period > most {
			s.failf("limit %s: the shards have %d millitokens together, one bucket had %d and %d/%d", o.name, sum, most/o.params.Period, most%o.params.Period, o.params.Period)
		}
	}
}

// checkTree requires that the shards are leaves of one tree, so that their shares are
// no more than the whole.
func (s *shardSim) checkTree() {
	if err := s.items.check(s.whole); err != nil {
		s.failf("%v", err)
	}
}

func (items *shardItems) check(whole []*oneBucket) error {
	parts, shares := 0, make([]int64, len(whole))
	for i, v := range items {
		if v == nil || v.shard.Retired {
			continue
		}
		parts += schema.MaxShards / v.shard.Level
		for j, o := range whole {
			shares[j] += v.shard.Share(o.params).Capacity
		}
		if i > 0 && !items.awaited(v) {
			return fmt.Errorf("shard %d was not split from shard %d as that is", i, schema.Heir(i))
		}
		for j, w := range items[:i] {
			if w != nil && !w.shard.Retired && (i-j)%min(v.shard.Level, w.shard.Level) == 0 {
				return fmt.Errorf("shard %d of %d and shard %d of %d have the same part", i, v.shard.Level, j, w.shard.Level)
			}
		}
	}
	for j, o := range whole {
		if parts > schema.MaxShards || shares[j] > o.params.Capacity {
			return fmt.Errorf("limit %s: shares of %d millitokens and %d/%d of the rate", o.name, shares[j], parts, schema.MaxShards)
		}
	}
	return nil
}

// decided takes down what a caller was told.
func (s *shardSim) decided(c *shardCall, admitted bool, err error) {
	switch {
	case err != nil:
		s.failed++
		return
	case !admitted:
		s.denied++
		return
	}
	s.admitted++
	got := make(map[string]int64)
	for _, r := range c.all() {
		for i := range r.spends {
			if sp := &r.spends[i]; r.admitted && sp.held && sp.take > 0 {
				got[sp.limit] += sp.take
				if !s.carried[r] {
					s.failf("%d millitokens were admitted that no write took", sp.take)
				}
			}
		}
	}
	c.left = 0
	for i := range c.ops[0].Spends {
		sp := &c.ops[0].Spends[i]
		if c.left = sp.Take; sp.Held && got[sp.Limit] != sp.Take && !s.drop {
			s.failf("%d millitokens were taken for %d", got[sp.Limit], sp.Take)
		}
	}
}

// refundable draws how much of an earlier take is given back, at most most, and where.
func (s *shardSim) refundable(most int64) (n int64, shard int) {
	for _, i := range s.r.Perm(len(s.calls)) {
		if c := s.calls[i]; c.left > 0 {
			n = min(most, c.left)
			c.left -= n
			return n, c.ops[0].Shard
		}
	}
	return 0, 0
}

// checkWindows holds what was taken, less what was given, against the greatest
// capacity and rate of a limit, in every window.
func (s *shardSim) checkWindows(name string) {
	var p tokenbucket.Params
	for _, limits := range s.versions {
		if i := limits.Find(name); i >= 0 {
			q := limits.Params(i)
			p.Capacity = max(p.Capacity, q.Capacity)
			if p.Period == 0 || q.Amount*p.Period > p.Amount*q.Period {
				p.Amount, p.Period = q.Amount, q.Period
			}
		}
	}
	bound := simBound{params: p, spread: slices.Max(s.skews) - slices.Min(s.skews)}
	ends := slices.DeleteFunc(slices.Clone(s.commits), func(c commit) bool { return c.limit != name || c.admitted == 0 })
	slices.SortFunc(ends, func(x, y commit) int { return cmp.Compare(x.to, y.to) })
	for _, first := range ends {
		sum := int64(0)
		for _, c := range ends {
			if c.from < first.from {
				continue
			}
			sum += c.admitted
			net := sum
			for _, g := range s.commits {
				if g.limit == name && g.given > 0 && g.to+bound.spread >= first.from && g.from-bound.spread <= c.to {
					net -= g.given
				}
			}
			if x := bound.excess(net, c.to-first.from); x.Sign() > 0 {
				s.failf("limit %s: %d millitokens net in %d ms of %d + %d/%d ms: %v/%d too many", name, net, c.to-first.from, p.Capacity, p.Amount, p.Period, x, p.Period)
			}
		}
	}
}
