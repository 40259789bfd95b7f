package lane

import (
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// fresh is a lane with leases that has seen nothing of its item, and takes of one token on
// 1,000 a second. Its messages go nowhere.
func fresh(t *testing.T) (s *Lanes, l *Lane, ask func() *Request, now *time.Time) {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.Custom("l", 1000, 1000, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(testTime)
	clock := func() time.Time { return at }
	s = New(Config{
		Loop: still{}, Now: clock, Clock: awsdb.NewClock(clock, 0), MaxLanes: 1, ShardUnits: 1000, Attempt: time.Second, Budget: time.Second,
		Leases: true, Logger: slog.New(slog.DiscardHandler),
	})
	site := &Site{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}
	l = s.hold(site, 0)
	return s, l, func() *Request {
		r := ofTokens(limits, 1)
		r.Site, r.Wait, r.At, r.Asks, r.Deadline = site, NewWait(1), at.UnixMilli(), true, at.Add(15*time.Millisecond)
		s.Send(r)
		return r
	}, &at
}

// A few calls at once create the item and lease it in one write. A lone call takes its token.
func TestTheFirstWriteLeases(t *testing.T) {
	for name, tt := range map[string]struct {
		calls  int
		leases bool
	}{"one call": {1, false}, "some calls": {3, true}} {
		t.Run(name, func(t *testing.T) {
			_, l, ask, now := fresh(t)
			for range tt.calls {
				ask()
			}
			m, _ := l.step(*now, true)
			if tt.leases {
				if w := leases(t, m).write; !w.Creates() {
					t.Errorf("got %+v, want a write that creates the item", w)
				}
				return
			}
			w, ok := m.(*write)
			if !ok || !w.write.Creates() || len(w.actors) != 1 {
				t.Errorf("got the message %+v, want a write for one call that creates the item", m)
			}
		})
	}
}

// An owed request on an item that is not created yet waits for more calls, and not
// for long.
func TestOwedWaitsForTheFirstLease(t *testing.T) {
	s, l, ask, now := fresh(t)
	late := ask()
	s.DecideLate([]*Request{late}, func([]*plan.Request) bool { return true })
	if f, _ := l.step(*now, true); f != nil {
		t.Fatalf("got the message %+v at once", f)
	}
	*now = now.Add(newWait)
	m, _ := l.step(*now, true)
	if w, ok := m.(*write); !ok || len(w.actors) != 1 {
		t.Errorf("got the message %+v, want the write of the owed request", m)
	}
}

// After a lease write without a reply the item is read at once, and then a lease is asked for.
// Until then calls do not wait for a lease.
func TestAfterALostLeaseWrite(t *testing.T) {
	_, l, ask, now := fresh(t)
	seen := bench(t, 500, 1000).view
	l.view.known, l.view.state, l.view.quick, l.view.head, l.view.sent = true, seen.state, seen.quick, seen.head, *now
	r := ask()
	for range 2 {
		ask()
	}
	m, _ := l.step(*now, true)
	f := leases(t, m)
	l.sender.arrived(f)
	f.lost(true, errDropped, *now)
	if waits, _ := l.lessee.decide(r, *now); waits {
		t.Error("a call waits for a lease that is not asked for")
	}
	m, _ = l.step(*now, true)
	if _, ok := m.(*read); !ok {
		t.Errorf("got the message %+v, want a read", m)
	}
	if l.lessee.rests(*now) {
		t.Error("no lease is asked for after the read")
	}
}

// A renewal without a request takes the time of the machine. That time does not count again when the lease is
// returned at the end: a return in the future would refill the bucket too early.
func TestNoReturnIsInTheFuture(t *testing.T) {
	s, l, ask, now := fresh(t)
	for range 3 {
		ask()
	}
	next := func() *lease.Plan {
		t.Helper()
		m, _ := l.step(*now, true)
		w := leases(t, m)
		l.sender.arrived(w)
		w.came(w.write.After(), false, *now)
		return w.lease
	}
	next()
	l.step(*now, true) // the calls are served
	*now = now.Add(60 * time.Millisecond)
	if renewal := next(); renewal.Kind != lease.Renew || renewal.Now != now.UnixMilli() {
		t.Fatalf("got %+v at %d, want a renewal", renewal, now.UnixMilli())
	}
	*now = now.Add(5 * time.Millisecond)
	s.closing.Store(true)
	l.lessee.recall()
	if last := next(); last.Kind != lease.Return || last.Now != now.UnixMilli() {
		t.Errorf("got %+v at %d, want a return", last, now.UnixMilli())
	}
}

// A return without a reply may be applied yet, where the item shows the state before it. Others may not write
// the item for long. At the end a turn settles the outcome: no write from before a turn is applied after it.
func TestATurnSettlesTheLastReturn(t *testing.T) {
	s, l, ask, now := fresh(t)
	for range 3 {
		ask()
	}
	m, _ := l.step(*now, true)
	grant := leases(t, m)
	l.sender.arrived(grant)
	grant.came(grant.write.After(), false, *now)
	l.step(*now, true) // the calls are served
	*now = now.Add(5 * time.Millisecond)
	s.closing.Store(true)
	l.lessee.recall()
	m, _ = l.step(*now, true)
	last := leases(t, m)
	l.sender.arrived(last)
	last.lost(true, errDropped, *now)
	m, _ = l.step(*now, true)
	r, ok := m.(*read)
	if !ok {
		t.Fatalf("got the message %+v, want a read", m)
	}
	l.sender.arrived(r)
	l.sees(l.view.state, &r.copies, *now)
	m, _ = l.step(*now, true)
	turn, ok := m.(*turnWrite)
	if !ok {
		t.Fatalf("got the message %+v, want a turn", m)
	}
	l.sender.arrived(turn)
	turn.lost(true, errDropped, *now)
	if m, _ = l.step(*now, true); m != nil {
		t.Fatalf("got the message %+v at once after a turn without a reply", m)
	}
	*now = now.Add(leaseRetry)
	if m, _ = l.step(*now, true); m == nil {
		t.Fatal("a turn without a reply is the last one")
	}
	turn = m.(*turnWrite)
	l.sender.arrived(turn)
	turn.came(turn.write.After(), false, *now)
	m, _ = l.step(*now, true)
	if w := leases(t, m); w.lease.Kind != lease.Return {
		t.Errorf("got the lease write %+v, want a return", w.lease)
	}
}

// asleep is a lane with a lease whose machine slept for 8 s. Then its process ends. corrects has the reply to
// a read correct the clock.
func asleep(t *testing.T) (l *Lane, now *time.Time, corrects func(m message)) {
	t.Helper()
	s, l, ask, now := fresh(t)
	wall, mono := int64(testTime)*int64(time.Millisecond), int64(time.Hour)
	*now = clocktest.At(wall, mono)
	l.host.cfg.Clock = awsdb.NewClock(func() time.Time { return *now }, 0)
	l.host.cfg.Clock.Observe(*now, *now, now.Truncate(time.Second))
	for range 3 {
		ask()
	}
	m, _ := l.step(*now, true)
	w := leases(t, m)
	l.sender.arrived(w)
	w.came(w.write.After(), false, *now)
	if m, _ = l.step(*now, true); m != nil || !l.held.holder.State().Serves() {
		t.Fatalf("no lease is held: %v, message %+v", l.held.holder.State(), m)
	}
	*now = clocktest.At(wall+int64(8*time.Second), mono)
	s.closing.Store(true)
	return l, now, func(m message) {
		l.host.cfg.Clock.Observe(*now, *now, now.Truncate(time.Second))
		l.sender.arrived(m)
		l.sees(l.view.state, &m.(*read).copies, *now)
	}
}

// A machine that slept shows it on its wall clock: its leases are over, and its clock is not trusted. A process
// that ends then has no other messages. So the item is read until the replies have corrected the clock, and
// the lease is returned.
func TestALeaseIsReturnedAfterASleep(t *testing.T) {
	l, now, corrects := asleep(t)
	for i := range awsdb.JumpReplies {
		l.lessee.recall()
		m, _ := l.step(*now, true)
		if _, ok := m.(*read); !ok {
			t.Fatalf("after %d replies: got the message %+v, want a read", i, m)
		}
		corrects(m)
	}
	l.lessee.recall()
	m, _ := l.step(*now, true)
	if w := leases(t, m); w.lease.Kind != lease.Return {
		t.Errorf("got the lease write %+v, want a return", w.lease)
	}
}

// While replies do not correct the clock, the item is read seldom.
func TestFewReadsCorrectTheClock(t *testing.T) {
	l, now, _ := asleep(t)
	const lasts, most = 5 * time.Second, awsdb.JumpReplies + int(5*time.Second/lookMost)
	reads := 0
	for began := *now; now.Sub(began) < lasts; *now = now.Add(time.Millisecond) {
		l.lessee.recall()
		if m, _ := l.step(*now, true); m != nil {
			reads++
			l.sender.arrived(m)
			l.view.sent = *now
		}
	}
	if reads <= awsdb.JumpReplies || reads > most {
		t.Errorf("%d reads, want more than %d and at most %d", reads, awsdb.JumpReplies, most)
	}
}

// A copy of a lease write may be applied after another one was throttled. Its slot is not of a copy of the
// machine.
func TestACopyOfAThrottledLeaseWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		copied bool
	}{
		"throttled": {&types.ProvisionedThroughputExceededException{}, false},
		"no table":  {&types.ResourceNotFoundException{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, l, ask, now := fresh(t)
			seen := bench(t, 500, 1000).view
			l.view.known, l.view.state, l.view.quick, l.view.head, l.view.sent = true, seen.state, seen.quick, seen.head, *now
			for range 3 {
				ask()
			}
			m, _ := l.step(*now, true)
			f := leases(t, m)
			f.conclude(reply{}, tt.err, *now)
			if got := l.held.copied(&schema.Lease{Sequence: f.lease.Slot.Seq, Rate: 1}); got != tt.copied {
				t.Errorf("the slot is one of a copy: %t, want %t", got, tt.copied)
			}
		})
	}
}

// A split halves the share of an item, and its limits stay. A lease of one half is computed by that.
// Otherwise it would lose the tokens that the centre has no room for, and refill twice as fast as its
// part.
func TestALeaseIsOfTheShareOfTheShard(t *testing.T) {
	_, l, ask, now := fresh(t)
	at := int64(testTime)
	shows := func(state *schema.Bucket) {
		l.view.known, l.view.state, l.view.quick, l.view.head, l.view.sent = true, state, plan.At(state, 0), state, *now
	}
	whole := bench(t, 500, 1000).view.state
	shows(whole)
	ask() // its lane has a holder, and no lease
	w, err := plan.Split(whole, at, 1)
	if err != nil {
		t.Fatal(err)
	}
	half := *w.After()
	half.Shard.Moving = false
	shows(&half)
	for range 3 {
		ask()
	}
	m, _ := l.step(*now, true)
	f := leases(t, m)
	had, has := plan.At(&half, at).Tokens(0, at), plan.At(f.write.After(), at).Tokens(0, at)+f.lease.Draw[0]
	if has < had-1 || l.held.level != half.Shard.Level {
		t.Errorf("the item had %d millitokens, and has %d with its lease; the lease is of a shard of %d, want %d", had, has, l.held.level, half.Shard.Level)
	}
}

// While newer limits wait for the leases of others, a request that the bucket has no tokens for is denied at
// once. Only a write that makes the change delays answers.
func TestWhatIsDeniedIsDeniedWhileLimitsWait(t *testing.T) {
	for name, tt := range map[string]struct {
		leased bool
		denied bool
	}{"leased": {true, true}, "not leased": {false, false}} {
		t.Run(name, func(t *testing.T) {
			s, l, _, now := fresh(t)
			state := *bench(t, 0, 1000).view.state
			if tt.leased {
				state.Line = schema.Line{Rate: 500, Room: 500}
				state.Leases = []schema.Lease{{Replica: 9, Sequence: 1, Rate: 500, Room: 500}}
			}
			l.view.known, l.view.state, l.view.quick, l.view.head = true, &state, plan.At(&state, 0), &state
			l.view.sent, l.view.at, l.view.now, l.view.asked = *now, testTime, testTime, testTime
			newer, err := limiter.NewLimits(limiter.Custom("l", 1000, 1001, time.Second))
			if err != nil {
				t.Fatal(err)
			}
			r := ofTokens(newer, 1)
			r.Site, r.Wait, r.At, r.Asks, r.Generation = &l.site, NewWait(1), testTime, true, 2
			r.Deadline, r.Policy.None = now.Add(15*time.Millisecond), true
			s.Send(r)
			f, _ := l.step(*now, true)
			if over := r.state == over; over != tt.denied || r.Admitted {
				t.Errorf("denied at once: %t, admitted %t, want %t; message %+v", over, r.Admitted, tt.denied, f)
			}
		})
	}
}

// A request that comes to a machine which slept waits until the clock is right. Then the item is created as of the time
// that it is, and not of the time that the machine took it for: else it would be refilled for the sleep at once.
func TestAnItemIsCreatedAtTheCorrectedTime(t *testing.T) {
	const slept = 30 * time.Minute
	_, l, ask, now := fresh(t)
	wall, mono := int64(testTime)*int64(time.Millisecond), int64(time.Hour)
	*now = clocktest.At(wall, mono)
	l.host.cfg.Clock = awsdb.NewClock(func() time.Time { return *now }, 0)
	l.host.cfg.Clock.ObserveExact(*now, *now, now.Round(0))
	*now = clocktest.At(wall+int64(slept), mono)
	r := ask()
	r.At, r.By = l.host.cfg.Clock.Correct(*now).UnixMilli(), l.host.cfg.Clock.Correction()
	var m message
	for range awsdb.JumpReplies + 1 {
		if m, _ = l.step(*now, true); m == nil {
			t.Fatal("nothing is sent for a request that waits")
		}
		if _, ok := m.(*read); !ok {
			break
		}
		l.host.cfg.Clock.ObserveExact(*now, *now, now.Round(0))
		l.sender.arrived(m)
		l.sees(nil, &m.(*read).copies, *now)
	}
	w, ok := m.(*write)
	if !ok || !w.write.Creates() {
		t.Fatalf("got the message %+v, want a write that creates the item", m)
	}
	const most = 100 * time.Millisecond // that the corrected clock is behind
	if off := time.UnixMilli(testTime).Add(slept).Sub(time.UnixMilli(w.write.After().At)); off < 0 || off > most {
		t.Errorf("the item is created as of %v ago, want at most %v", off, most)
	}
}

// A request that waits for a grant is denied by a state that is fresh, and by no older one: other replicas may have
// given tokens back since.
func TestNoDenialByAnOldStateWhereALeaseIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		age    time.Duration
		denied bool
	}{"fresh": {Freshness, true}, "old": {Freshness + time.Millisecond, false}, "very old": {300 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			_, l, ask, now := fresh(t)
			seen := bench(t, 500, 1000).view
			l.view.known, l.view.state, l.view.quick, l.view.head, l.view.sent = true, seen.state, seen.quick, seen.head, *now
			*now = now.Add(tt.age)
			large := ask()
			for range 3 {
				ask()
			}
			large.Spends[0].Need, large.Spends[0].Take = 900*limiter.Milli, 900*limiter.Milli
			waits, done := l.lessee.decide(large, *now)
			if done != tt.denied || waits == tt.denied || large.Admitted {
				t.Errorf("waits %t, done %t, admitted %t; want a denial: %t", waits, done, large.Admitted, tt.denied)
			}
		})
	}
}
