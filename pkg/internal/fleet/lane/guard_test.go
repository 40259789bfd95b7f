package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lessees is a process whose lanes have leases on items of 1,000 a second. Its messages go nowhere.
type lessees struct {
	*testing.T
	*Lanes

	now *time.Time
}

func newLessees(t *testing.T) *lessees {
	t.Helper()
	s, _, _, now := fresh(t)
	return &lessees{t, s, now}
}

// request returns a take of a caller on the item of an entity.
func (s *lessees) request(entity string, take int64) *Request {
	s.Helper()
	limits, err := limiter.NewLimits(limiter.Custom("l", 1000, 1000, time.Second))
	if err != nil {
		s.Fatal(err)
	}
	r := ofTokens(limits, take)
	r.Site = &Site{Bucket: limiter.BucketKey{Entity: entity, Resource: "r"}}
	r.At, r.Asks, r.Wait, r.Deadline = s.now.UnixMilli(), true, NewWait(1), s.now.Add(15*time.Millisecond)
	return r
}

// grant returns the lane of an entity, whose item it has created with a lease.
func (s *lessees) grant(entity string) *Lane {
	s.Helper()
	var l *Lane
	for range 20 {
		r := s.request(entity, 1)
		s.Send(r)
		l = laneOf(r)
	}
	m, _ := l.step(*s.now, true)
	f := leases(s.T, m)
	put := f.write.Put(schema.NewBucketItem(l.site.Namespace, l.site.Bucket, 0))
	f.conclude(reply{item: put.Item}, nil, *s.now)
	if got := l.held.holder.State(); got != lease.Held {
		s.Fatalf("the lease is %v, want held", got)
	}
	l.serveAll(*s.now)
	return l
}

// leases returns a message that is to be a lease write.
func leases(t *testing.T, m message) *leaseWrite {
	t.Helper()
	w, ok := m.(*leaseWrite)
	if !ok || w.lease == nil {
		t.Fatalf("got the message %+v, want a lease write", m)
	}
	return w
}

// pauses has the process stand still behind the next reading of its clock.
func (s *lessees) pauses(d time.Duration) {
	before, read := s.cfg.Now, false
	s.cfg.Now = func() time.Time {
		at := before()
		if read {
			return at.Add(d)
		}
		read = true
		return at
	}
}

// stock returns the tokens of a lease.
func stock(l *Lane) int64 { return l.held.holder.Report(0, l.view.now, 0, true).Tokens }

// A lease that was over before its spend was tested serves nothing: another replica may have freed it in a
// pause of the process.
func TestALeaseThatIsOverServesNothing(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	r := s.request("e", 1)
	s.pauses(lease.Term * time.Millisecond)
	s.Send(r)
	if r.state == over || l.held.holder.State().Serves() {
		t.Errorf("a request is decided by a lease that is %v, %v after its send", l.held.holder.State(), lease.Term*time.Millisecond)
	}
}

// A call over several items is served by leases that all still last after the spend. Otherwise those that
// last have their tokens again.
func TestACascadeNeedsLeasesThatAreAlive(t *testing.T) {
	for name, tt := range map[string]struct {
		pause  time.Duration
		serves bool
	}{
		"all are alive":  {time.Millisecond, true},
		"one is over":    {3 * time.Second, false},
		"both are over":  {6 * time.Second, false},
		"within the end": {lease.Term*time.Millisecond - 3*time.Second - time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			s.grant("old")
			*s.now = s.now.Add(3 * time.Second)
			young := s.grant("young")
			before := stock(young)
			requests := []*Request{s.request("old", 1), s.request("young", 1)}
			s.pauses(tt.pause)
			if got := s.ServeTogether(requests); got != tt.serves {
				t.Fatalf("served: %t, want %t", got, tt.serves)
			}
			if left := stock(young); tt.pause < 5*time.Second && !tt.serves && left != before {
				t.Errorf("the lease that is alive has %d millitokens after a call that it did not serve, before %d", left, before)
			}
		})
	}
}

// A large request gets a part of the lease and a part of the centre. Where the lease is over when the centre
// has given its part, the request is denied, and the lane owes the centre that part.
func TestTheCentresPartGoesBack(t *testing.T) {
	for name, ends := range map[string]bool{"the lease is alive": false, "the lease is over": true} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			own := stock(l) / limiter.Milli
			r := s.request("e", own+50)
			l.lessee.keep(r, []lease.Draw{{Limit: 0, Need: r.Spends[0].Need, Take: r.Spends[0].Take}}, false)
			if r.part == nil || r.Spends[0].Take >= r.part.spends[0].Take {
				t.Fatalf("the centre is asked for %d of %d", r.Spends[0].Take, (own+50)*limiter.Milli)
			}
			centre := r.Spends[0].Take
			r.Admitted, r.Spends[0].Held, r.Spends[0].Back, r.Under = true, true, centre, r.Limits // the centre gave it
			if ends {
				*s.now = s.now.Add(lease.Term * time.Millisecond)
				l.held.holder.Alive(s.clocks(*s.now))
			}
			l.lessee.unite(r)
			if r.Admitted == ends {
				t.Errorf("admitted: %t", r.Admitted)
			}
			owed := int64(0)
			for _, o := range l.owed {
				owed += o.Spends[0].Give
			}
			if want := map[bool]int64{true: centre}[ends]; owed != want {
				t.Errorf("the lane owes the centre %d millitokens, want %d", owed, want)
			}
		})
	}
}

// A refund goes to the lease as far as that has the room, and to the item for the rest: never to both.
func TestAGiveBackGoesToOnePlace(t *testing.T) {
	for name, more := range map[string]int64{"all of it has room": -10, "some has none": 980} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			r := s.request("e", 20)
			s.Send(r)
			if r.state != over || !r.Admitted {
				t.Fatal("the lease does not serve 20 tokens")
			}
			before := stock(l)
			amount := (20 + more) * limiter.Milli
			back := s.request("e", 0).owed(&plan.Request{Limits: r.Limits, Spends: []plan.Spend{{Limit: "l", Give: amount, Usage: -amount}}})
			back.entered = *s.now
			l.closer.happen(back, entered)
			_, done := l.lessee.payOwed(back, *s.now)
			left := int64(0)
			if !done {
				left = back.Spends[0].Give
			}
			if got := stock(l) - before + left; got != amount {
				t.Errorf("%d millitokens go to the lease and %d to the item; %d were given back", stock(l)-before, left, amount)
			}
			if _, usage := l.held.ledger.Report(); done && (usage == nil || usage[0] != 40*limiter.Milli-amount) {
				t.Errorf("the ledger counts %v as consumed, want 20 tokens of the grant, and 20 less the refund", usage)
			}
			if done != (more < 0) {
				t.Errorf("done: %t, with room for 20 tokens and %d given back", done, amount)
			}
		})
	}
}

// The usage of an owed request is counted where its tokens are: by the lease as far as that pays it, and by
// the item for the rest. A crash between the two would lose more than the lease had served.
func TestUsageGoesWhereItsTokensGo(t *testing.T) {
	const served = int64(40 * limiter.Milli) // by the grant, and the take
	for name, tt := range map[string]struct {
		give, cost, usage int64
		paid              bool // by the lease alone
	}{
		"a refund with room":      {give: 10, usage: -10, paid: true},
		"a refund with some room": {give: 1000, usage: -1000},
		"a charge with tokens":    {cost: 10, usage: 10, paid: true},
		"a charge with some":      {cost: 1000, usage: 1000},
		"usage alone":             {usage: 7, paid: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			r := s.request("e", 20)
			s.Send(r)
			before := stock(l)
			owes := s.request("e", 0).owed(&plan.Request{Limits: r.Limits, Spends: []plan.Spend{{
				Limit: "l", Give: tt.give * limiter.Milli, Cost: tt.cost * limiter.Milli, Usage: tt.usage * limiter.Milli,
			}}})
			owes.entered = *s.now
			l.closer.happen(owes, entered)
			_, done := l.lessee.payOwed(owes, *s.now)
			want := before - stock(l)
			if tt.give+tt.cost == 0 {
				want = tt.usage * limiter.Milli
			}
			got := -served
			if _, counted := l.held.ledger.Report(); counted != nil { // nil = nothing
				got += counted[0]
			}
			if done != tt.paid || got != want || !done && owes.Spends[0].Usage != tt.usage*limiter.Milli-want {
				t.Errorf("done: %t; the lease counts %d millitokens, want %d; the item %+v", done, got, want, owes.Spends[0])
			}
		})
	}
}

// A request that was admitted late is booked by another write where its own was refused. One that was
// denied late is not.
func TestALateAdmissionIsBookedAfterARefusal(t *testing.T) {
	for name, undo := range map[string]bool{"admitted": false, "denied": true} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			r := s.request("e", 5)
			l := s.hold(r.Site, 0)
			r.state, r.Wait = sent, nil
			r.Admitted, r.Spends[0].Held = true, true // it was planned so
			l.closer.happen(r, map[bool]event{false: admittedLate, true: deniedLate}[undo])
			l.closer.again(&batch{write: &plan.Write{}, actors: []*Request{r}}, false)
			booked := int64(0)
			for _, o := range l.queue {
				booked += o.Spends[0].Cost
			}
			if want := map[bool]int64{false: 5 * limiter.Milli}[undo]; booked != want || s.Counters.Owed.Load() != int64(len(l.queue)) {
				t.Errorf("%d millitokens are to be booked, want %d; %d requests are owed", booked, want, s.Counters.Owed.Load())
			}
		})
	}
}

// A request that was admitted late is booked also where an outage ended its write before it was sent:
// the table may have too few tokens for it later.
func TestALateAdmissionIsBookedAfterAnOutage(t *testing.T) {
	s := newLessees(t)
	r := s.request("e", 5)
	l := s.hold(r.Site, 0)
	r.state, r.Wait = sent, nil
	r.Admitted, r.Spends[0].Held = true, true // it was planned so
	l.closer.happen(r, admittedLate)
	l.closer.failed([]*Request{r}, outage(), *s.now)
	if len(l.later) != 1 || l.later[0].Spends[0].Cost != 5*limiter.Milli || s.Counters.Owed.Load() != 1 {
		t.Errorf("%d requests wait, %d are owed; want one of 5 tokens that are taken whatever is left", len(l.later), s.Counters.Owed.Load())
	}
}

// An earlier write took the tokens of a request. An outage ends the write that the request is in now,
// and no other write takes them again.
func TestABookedRequestIsNotBookedAfterAnOutage(t *testing.T) {
	s := newLessees(t)
	r := s.request("e", 5)
	l := s.hold(r.Site, 0)
	r.state, r.Wait, r.Request = sent, nil, r.Force()
	l.closer.happen(r, admittedLate)
	r.booked = true
	l.closer.failed([]*Request{r}, outage(), *s.now)
	if r.state != over || r.Err != nil || len(l.later) != 0 || s.Counters.Owed.Load() != 0 || s.Counters.Lost.Load() != 0 {
		t.Errorf("it is %v with %v; %d requests wait, %d are owed, %d lost; want its end alone", r.state, r.Err, len(l.later), s.Counters.Owed.Load(), s.Counters.Lost.Load())
	}
}

// outage is the error of a write that was not sent in an outage.
func outage() error { return fmt.Errorf("%w: %w", limiter.ErrUnavailable, awsdb.ErrOutage) }

// A lease write that was applied without a reply counts as an own one. That holds after any number of tried
// returns while the table does not answer. Otherwise the process would take itself for a copy, and lose its
// leases.
func TestAStallMakesNoCopy(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	self := s.self.replica()
	*s.now = s.now.Add(time.Second)
	s.Send(s.request("e", 1))
	m, _ := l.step(*s.now, true)
	f := leases(t, m)
	if f.lease.Kind != lease.Renew {
		t.Fatalf("got the message %+v, want a renewal", f)
	}
	renewed := f.write.After()
	l.sender.arrived(f)
	f.lost(true, errDropped, *s.now)
	returns := 0
	for range 100 {
		l.lessee.recall()
		m, _ := l.step(*s.now, true)
		switch m := m.(type) {
		case nil:
			*s.now = s.now.Add(leaseRetry)
		case *leaseWrite:
			returns++
			l.sender.arrived(m)
			m.lost(returns%2 == 0, errDropped, *s.now)
		default:
			m.conclude(reply{}, awsdb.ErrOutage, *s.now)
		}
	}
	if returns < len(l.held.issued) {
		t.Fatalf("%d returns, want more than the %d lease writes that are remembered", returns, len(l.held.issued))
	}
	l.events++
	l.saw(renewed, &copies{asked: l.events}, *s.now)
	if s.self.replica() != self {
		t.Error("the process took its own lease for that of a copy")
	}
}
