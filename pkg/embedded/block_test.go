package embedded

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

func TestSizeOfTheNextBlock(t *testing.T) {
	const token, minute = limiter.Milli, 60_000
	tests := map[string]struct {
		capacity  int64
		available int64 // 0 = the capacity
		elapsed   int64
		span      span
		want      int64
	}{
		"the first request of a large bucket":      {100_000 * token, 0, 0, span{need: token}, 390_625},
		"the first request of a small bucket":      {10 * token, 0, 0, span{need: token}, token},
		"demand doubles within a second":           {100_000 * token, 0, 999, span{size: 1000 * token, spent: 900 * token}, 1800 * token},
		"then it is the use of a second":           {1_000_000 * token, 0, 2000, span{size: 40_000 * token, spent: 40_000 * token}, 20_000 * token},
		"no more than a sixteenth for demand":      {1600 * token, 0, 10, span{size: 100 * token, spent: 100 * token}, 100 * token},
		"slow requests: two, so that none waits":   {100 * token, 0, minute, span{size: 2 * token, spent: 2 * token, last: token}, 2 * token},
		"two requests of a small bucket":           {10 * token, 0, minute, span{size: 2 * token, spent: 2 * token, last: token}, 2 * token},
		"one whole request of the smallest bucket": {token, 0, minute, span{size: token, spent: token, last: token}, token},
		"large requests: at most a quarter ahead":  {100 * token, 0, minute, span{size: 60 * token, spent: 60 * token, last: 60 * token}, 25 * token},
		"one large request is covered":             {100 * token, 0, minute, span{need: 90 * token}, 90 * token},
		"the rest is covered during the commit":    {100 * token, 0, minute, span{size: 90 * token, spent: token}, 89 * token},
		"the largest numbers": {
			tokenbucket.MaxCapacity, 0, 0,
			span{size: maxFlow, spent: maxFlow, last: maxFlow, need: maxFlow},
			maxFlow,
		},
		"a clock that was set back": {1_000_000 * token, 0, math.MinInt64, span{size: 10 * token, spent: 10 * token}, 3_906_250},
		"no more than there is":     {1_000_000 * token, 7 * token, 999, span{size: 1000 * token, spent: 900 * token, last: 20 * token}, 7 * token},
		"of nothing nothing":        {1_000_000 * token, -1, 999, span{size: 1000 * token, spent: 1000 * token, last: token}, 0},
	}
	for name, tt := range tests {
		available := tt.capacity
		if tt.available != 0 {
			available = tt.available
		}
		if got := tt.span.next(tt.capacity, available, tt.elapsed); got != tt.want {
			t.Errorf("%s: a block of %d, want %d", name, got, tt.want)
		}
	}
}

// A block is renewed when a quarter is left, if a new one helps.
func TestABlockIsRenewedInTime(t *testing.T) {
	const token = limiter.Milli
	for name, tt := range map[string]struct {
		capacity, tokens int64
		size, spent      int64
		take             int64
		want             bool
	}{
		"a quarter is left":                    {1000, 1000, 20, 14, 1, false},
		"less than a quarter is left":          {1000, 1000, 20, 15, 1, true},
		"the next would cover no such request": {100, 100, 60, 0, 60, false},
		"the next would not be larger":         {1000, 1000, 500, 400, 1, false},
		"there is no more than the rest of it": {1000, 4, 20, 15, 1, false},
	} {
		limits := limitsOf(t, limiter.PerDay("l", tt.capacity))
		op := opOf("e", limits, tt.take)
		b := newDurableBucket(&op, 0)
		s := &b.block.first
		s.nextSize = tt.size * token
		b.conclude(committed)
		s.spent, b.first.Tokens = tt.spent*token, tt.tokens*token
		b.prepare(&op, 500)
		if got, _ := b.account(&op, 500, true); got != tt.want {
			t.Errorf("%s: asks %t, want %t; %+v", name, got, tt.want, s)
		}
	}
}

// If the next block would not help, it is rarely requested.
func TestABlockAsksSeldom(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("l", 1_000_000))
	op := opOf("e", limits, 1)
	b := newDurableBucket(&op, 0)
	s := &b.block.first
	s.nextSize = 60_000 * limiter.Milli // of a time when it was in demand
	b.conclude(committed)
	asked, last := 0, s.renewAt
	for range 56_000 {
		b.prepare(&op, hourMs)
		if low, _ := b.account(&op, hourMs, true); low {
			t.Fatalf("asks with %d left of %d", s.size-s.spent, s.size)
		}
		if s.renewAt != last {
			asked, last = asked+1, s.renewAt
		}
	}
	if asked == 0 || asked > 20 {
		t.Errorf("%d renewal checks in 56,000 takes, want a few", asked)
	}
}

// Waiting callers share a block of the sum of their amounts, within the balance and a part of the
// capacity.
func TestWaitingCallersShareABlock(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("l", 100))
	for _, tt := range []struct{ tokens, takes, callers, want int64 }{
		{100, 1, 1, 1}, {100, 1, 7, 7}, {100, 1, 300, 25}, {10, 1, 300, 10}, {100, 60, 1, 60}, {100, 60, 5, 60},
	} {
		op := opOf("e", limits, tt.takes)
		b := newBucket(&op, 0)
		b.block = newBlock(limits, 0)
		b.first.Tokens = tt.tokens * limiter.Milli
		for range tt.callers {
			if admitted := b.prepare(&op, 0); b.covers(&op, admitted) {
				t.Errorf("%+v: covered without a block", tt)
			}
		}
		b.openBlock(0)
		if got := b.block.first.nextSize; got != tt.want*limiter.Milli {
			t.Errorf("%+v: a block of %d", tt, got)
		}
	}
}

// Tokens for a waiting caller are still there when the next state is written, however few the
// bucket has. Otherwise no caller could be sure to get them. After its take they are gone.
func TestABlockLastsUntilItsCallerReturns(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("l", 10))
	charge := opOf("e", limits, 0)
	charge.Spends[0].Charge = 50 * limiter.Milli
	b := newDurableBucket(&charge, 0)
	b.first.Tokens = 0
	covers := func(want bool) {
		t.Helper()
		b.prepare(&charge, 0)
		if got := b.covers(&charge, true); got != want {
			t.Fatalf("covered: %t, want %t; %+v", got, want, b.block.first)
		}
	}
	covers(false)
	b.openBlock(0)
	b.conclude(committed)
	b.openBlock(0) // for others, before the caller is back
	covers(true)
	b.account(&charge, 0, true)
	b.conclude(committed)
	b.openBlock(0)
	b.conclude(committed)
	if got := b.block.first.size; got != 0 {
		t.Errorf("a block of %d when all is taken, want none", got)
	}
}

// proof is one bucket in memory, and its possible records in the file.
type proof struct {
	t      *rapid.T
	now    int64
	bucket *bucket
	gen    uint64
	sets   []*limiter.Limits

	held     []held // possible records in the file: one, or two after a commit of unknown outcome
	inFlight *held  // the record that is being written
	rows     []usageRow
	dead     bool // the file takes nothing any more

	gave bool // the answer to a refund waits for the file

	used, counted map[consumed]int64 // expected, and in rows; amounts are 0 in the keys
}

// held is a record that a file may have; nil = none.
type held struct {
	key, value []byte
	then       *bucket // the bucket when its limits were replaced; nil = not replaced
}

// TestBlocksBoundWhatACrashGives: however a bucket is used, and whenever the process
// dies, recovery finds no more than there was, and at most the block less.
func TestBlocksBoundWhatACrashGives(t *testing.T) {
	all := []*limiter.Limits{
		limitsOf(t, limiter.PerSecond("a", 5), limiter.PerMinute("b", 60)),
		limitsOf(t, limiter.Custom("a", 3, 7, 3*time.Second).WithMaxDebt(2)),
		limitsOf(t, limiter.PerDay("b", 1_000_000).WithMaxDebt(limiter.NoDebt), limiter.Unlimited("a"), limiter.PerHour("c", 30)),
		limitsOf(t, limiter.PerDay("b", limiter.MaxTokens)),
	}
	rapid.Check(t, func(t *rapid.T) {
		p := &proof{t: t, now: 1_000_000_000, gen: 1, sets: all, used: map[consumed]int64{}, counted: map[consumed]int64{}, held: []held{{}}}
		limits := rapid.SampledFrom(all).Draw(t, "limits")
		op := opOf("e", limits, 0)
		p.bucket = newBucket(&op, p.now)
		p.bucket.block = newBlock(limits, p.now)
		t.Repeat(map[string]func(*rapid.T){
			"use": p.use, "use again": p.use, "use once more": p.use, "write": p.write, "write again": p.write,
			"wait": p.wait, "change": p.change, "leave": p.leave,
			"": func(t *rapid.T) { p.t = t; p.check() },
		})
	})
}

func (p *proof) wait(t *rapid.T) {
	p.now += rapid.OneOf(rapid.Int64Range(0, 500), rapid.Int64Range(0, 20_000), rapid.Int64Range(0, 2*hourMs)).Draw(t, "ms")
}

// spend draws the spend of a limit: usually one thing, and sometimes a lot.
func (p *proof) spend(t *rapid.T, l limiter.Limit) limiter.Spend {
	capacity := max(l.Capacity, 1) * limiter.Milli
	amount := func() int64 {
		most := rapid.SampledFrom([]int64{capacity / 50, capacity / 4, capacity + capacity/8}).Draw(t, "most")
		return rapid.Int64Range(1, most).Draw(t, "amount")
	}
	sp := limiter.Spend{Limit: l.Name}
	switch rapid.SampledFrom([]string{"take", "take", "take", "refund", "refund", "charge", "all", "look"}).Draw(t, "does") {
	case "take":
		sp.Take = amount()
	case "refund":
		sp.Refund = amount()
	case "charge":
		sp.Charge = amount()
	case "all":
		sp.Take, sp.Charge, sp.Refund = amount(), amount(), amount()
	default:
		sp.Look = true
	}
	return sp
}

func (p *proof) use(t *rapid.T) {
	op := limiter.Op{Bucket: limiter.BucketKey{Entity: "e"}, Limits: p.bucket.limits, Generation: p.gen}
	for i := range op.Limits.Len() {
		op.Spends = append(op.Spends, p.spend(t, op.Limits.At(i)))
	}
	b, now := p.bucket, p.now-rapid.Int64Range(0, 100).Draw(t, "late")
	admitted := b.prepare(&op, now)
	if !b.covers(&op, admitted) {
		b.block.queued = true
		return
	}
	hour := max(hourOf(now), b.block.hour)
	low, over := b.account(&op, now, admitted)
	b.block.queued = b.block.queued || low || over
	p.gave = p.gave || over
	event := int64(0)
	for i := range op.Spends {
		if sp := &op.Spends[i]; sp.Held {
			gives, takes := flow(sp, admitted)
			p.used[consumed{hour: hour, limit: sp.Limit}] += takes - gives
			if takes != gives {
				event = 1
			}
		}
	}
	p.used[consumed{hour: hour, limit: eventsLimit}] += event
}

// change replaces the limits of the bucket.
func (p *proof) change(t *rapid.T) {
	b, to := p.bucket, rapid.SampledFrom(p.sets).Draw(t, "limits")
	p.gen++
	if to == b.limits {
		return
	}
	old := *b
	b.applyLimits(to, p.gen, p.now)
	p.gave = false
	for i := range p.held {
		p.held[i].then = cmp.Or(p.held[i].then, &old)
	}
	if p.inFlight != nil {
		p.inFlight.then = cmp.Or(p.inFlight.then, &old)
	}
}

func (p *proof) leave(*rapid.T) {
	if k := p.bucket.block; !k.queued && !k.inFlight && p.bucket.idle(p.now-grace.Milliseconds()) {
		k.onCommit, k.queued = commitDrop, true
	}
}

// write moves the writer on by one step.
func (p *proof) write(t *rapid.T) {
	b := p.bucket
	if p.inFlight == nil {
		if b.block.queued {
			var w writing
			w.add(b, p.now)
			p.inFlight, p.rows = &held{key: w.changes[0].key, value: w.changes[0].value}, w.used
		}
		return
	}
	how := outcome(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 1, 1, 2}).Draw(t, "outcome"))
	if p.dead {
		how = unknown
	}
	switch how {
	case committed:
		p.gave = p.gave && b.block.queued
		p.held = []held{*p.inFlight}
		for _, r := range p.rows {
			p.counted[consumed{hour: r.hour, limit: r.limit}] += r.amount
		}
	case unknown:
		if !p.dead {
			p.held = append(p.held, *p.inFlight)
		}
		p.dead = true
	case notCommitted:
	}
	b.conclude(how)
	p.inFlight = nil
}

// check has the process die at once, in each way that the file may be.
func (p *proof) check() {
	records := p.held
	if p.inFlight != nil && !p.dead {
		records = append(slices.Clip(records), *p.inFlight)
	}
	for _, h := range records {
		b := cmp.Or(h.then, p.bucket)
		if h.value == nil {
			if !b.full(p.now) {
				p.t.Fatalf("the file has nothing of a bucket that is not full: %+v", b)
			}
			continue
		}
		r, err := parseBucket(h.key, h.value, map[string]*limiter.Limits{})
		if err != nil {
			p.t.Fatal(err)
		}
		r.recover(p.now)
		for i := range b.limits.Len() {
			if !b.limits.Unlimited(i) {
				p.compare(b, r, i, h.then != nil)
			}
		}
	}
	p.checkUsage()
}

func (p *proof) compare(b *bucket, r restored, i int, old bool) {
	got, most := r.balance(i).Tokens, b.balance(i).Available(b.limits.Params(i), p.now)
	if got > most {
		p.t.Fatalf("limit %v: a crash finds %d, there are %d", b.limits.At(i), got, most)
	}
	if least := most - r.sizes[i]; got < least && !p.gave && !p.dead && !old {
		p.t.Fatalf("limit %v: a crash finds %d of %d, the block was %d", b.limits.At(i), got, most, r.sizes[i])
	}
}

func (p *proof) checkUsage() {
	got := maps.Clone(p.counted)
	p.bucket.consumption(func(c consumed) { got[consumed{hour: c.hour, limit: c.limit}] += c.amount })
	for _, m := range []map[consumed]int64{got, p.used} {
		maps.DeleteFunc(m, func(_ consumed, n int64) bool { return n == 0 })
	}
	if diff := gocmp.Diff(p.used, got, gocmp.AllowUnexported(consumed{})); diff != "" {
		p.t.Fatalf("usage (-want +got):\n%s", diff)
	}
}

// A refund during a commit does not widen the block of the new state. When the bucket and that
// state are full again, no more than the block may be taken.
func TestGivingBackWhileAStateIsWritten(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("l", 100))
	s, d := openStill(t, t.TempDir(), Config{Now: func() time.Time { return t0 }})
	big := opOf("e", limits, 60)
	if got, err := s.tryOne(t0.UnixMilli(), &big); err != nil || got.done {
		t.Fatalf("before the file has the bucket: %+v, %v", got, err)
	}
	d.writeNext()
	mustTake(t, s, t0, true, big)
	b := onlyBucket(t, s)
	d.want(&s.shards[0], 0, b)
	n := d.take()
	w := d.collect(n) // with a block of a quarter
	refund := opOf("e", limits, 0)
	refund.Spends[0].Refund = 50 * limiter.Milli
	if got, err := s.tryOne(t0.UnixMilli(), &refund); err != nil || !got.done || got.wait == nil {
		t.Errorf("giving back more than was taken since the state: %+v, %v; want it to wait for the file", got, err)
	}
	for take, want := range map[int64]bool{26: false, 25: true} {
		op := opOf("e", limits, take)
		b.prepare(&op, t0.Add(time.Hour).UnixMilli())
		if got := b.covers(&op, true); got != want {
			t.Errorf("%d tokens while the state is written: covered %t, want %t", take, got, want)
		}
	}
	d.conclude(n, w.save(d.file))
}

// After a commit of unknown outcome both states bound the takes.
func TestHowACommitEnds(t *testing.T) {
	before := span{size: 100, spent: 70, nextSize: 40, nextSpent: 15, used: 1, last: 2, need: 3, renewAt: 4}
	for how, want := range map[outcome]span{
		committed:    {size: 40, spent: 15, nextSize: 40, nextSpent: 15, used: 1, last: 2, need: 3, renewAt: 30},
		notCommitted: {size: 100, spent: 70, nextSize: 100, nextSpent: 70, used: 1, last: 2, need: 3, renewAt: 4},
		unknown:      {size: 40, spent: 15, nextSize: 40, nextSpent: 15, used: 1, last: 2, need: 3, renewAt: 4},
	} {
		got := before
		got.conclude(how)
		if got != want {
			t.Errorf("outcome %d: got %+v, want %+v", how, got, want)
		}
	}
}

// A charge that the debt floor cuts has taken less than its amount. A refund of more than it took
// must be in the file.
func TestGivingBackAfterAChargeThatWasCut(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("l", 10).WithMaxDebt(2))
	s, d := openStill(t, t.TempDir(), Config{Now: func() time.Time { return t0 }})
	charge := opOf("e", limits, 0)
	charge.Spends[0].Charge = 100 * limiter.Milli
	if got, err := s.tryOne(t0.UnixMilli(), &charge); err != nil || got.done {
		t.Fatalf("before the file has the bucket: %+v, %v", got, err)
	}
	d.writeNext()
	mustTake(t, s, t0, true, charge)
	for _, step := range []struct {
		tokens int64
		waits  bool
	}{{11, false}, {2, true}} {
		op := opOf("e", limits, 0)
		op.Spends[0].Refund = step.tokens * limiter.Milli
		if got, err := s.tryOne(t0.UnixMilli(), &op); err != nil || !got.done || got.wait != nil != step.waits {
			t.Errorf("refund of %d tokens: %+v, %v; want waiting %t", step.tokens, got, err, step.waits)
		}
	}
}

// A bucket that is used while its record is deleted is not dropped: it would be full.
func TestABucketInUseDoesNotLeave(t *testing.T) {
	limits := limitsOf(t, limiter.PerSecond("a", 10))
	for _, step := range []struct {
		what   string
		during func(s *Store, b *bucket)
		held   int64
	}{
		{"nothing", func(*Store, *bucket) {}, 0},
		{"a caller waits to take", func(s *Store, _ *bucket) {
			if got, err := s.tryOne(t0.UnixMilli(), new(opOf("a", limits, 1))); err != nil || got.done {
				t.Errorf("a take from a bucket whose record is deleted: %+v, %v", got, err)
			}
		}, 1},
		{"a refund", func(s *Store, _ *bucket) {
			op := opOf("a", limits, 0)
			op.Spends[0].Refund = 1
			if got, err := s.tryOne(t0.UnixMilli(), &op); err != nil || !got.done {
				t.Errorf("giving back: %+v, %v", got, err)
			}
		}, 1},
		{"a limit is raised, and the file has nothing under it", func(s *Store, _ *bucket) {
			op := opOf("a", limitsOf(t, limiter.PerSecond("a", 1000)), 500)
			op.Generation++
			if got, err := s.tryOne(t0.Add(time.Hour).UnixMilli(), &op); err != nil || got.done {
				t.Errorf("of the raised limit: %+v, %v", got, err)
			}
		}, 1},
	} {
		s, d := openStill(t, t.TempDir(), Config{Now: func() time.Time { return t0.Add(time.Hour) }})
		op := opOf("a", limits, 1)
		if got, err := s.tryOne(t0.UnixMilli(), &op); err != nil || got.wait == nil {
			t.Fatal(got, err)
		}
		d.writeNext()
		mustTake(t, s, t0, true, op)
		d.writeNext()
		if s.sweep(0, shardCount, t0.Add(time.Hour).UnixMilli()) == nil {
			t.Fatalf("a full bucket stays: %+v", onlyBucket(t, s).block)
		}
		n := d.take()
		w := d.collect(n)
		step.during(s, n.buckets[0].bucket)
		d.conclude(n, w.save(d.file))
		if got := s.Buckets(); got != step.held || n.err != nil {
			t.Errorf("while it left, %s: %d buckets, want %d; %v", step.what, got, step.held, n.err)
		}
		if got := d.file.Stats().Records[datafile.Buckets]; got != 0 {
			t.Errorf("while it left, %s: %d records, want none", step.what, got)
		}
	}
}
