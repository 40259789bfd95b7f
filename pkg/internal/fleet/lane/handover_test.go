package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lease is freed as of now. Its holder may have served from it since the last request of the lane: the item would
// refill that a second time. An owed request brings an old time.
func TestALeaseIsFreedAsOfNow(t *testing.T) {
	const holder = 77
	for name, frees := range map[string]func(s *lessees){
		"of the lanes before": func(s *lessees) { s.cfg.Before = &Predecessors{replicas: []uint32{holder}} },
		"of a dead replica":   func(s *lessees) { *s.now = s.now.Add(lease.ReapAfter * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			first := s.request("e", 1)
			l := s.hold(first.Site, 0)
			state := schema.NewBucket(first.Limits, 1, s.now.UnixMilli())
			stage := plan.NewStage(state, s.now.UnixMilli(), plan.Options{})
			if err := stage.Lease(plan.LeaseWrite{Replica: holder, Lease: &schema.Lease{Sequence: 1, Rate: 900, Room: 900}}); err != nil {
				t.Fatal(err)
			}
			l.saw(stage.Write(plan.ID{Write: schema.NewWriteID(holder, 1)}, 1).After(), &copies{sent: *s.now}, *s.now)
			owed := first.owed(first.Force())
			*s.now = s.now.Add(time.Second)
			frees(s)
			s.Send(owed)
			m, _ := l.step(*s.now, true)
			w, ok := m.(*leaseWrite)
			if !ok || w.reaps != 1 {
				t.Fatalf("got the message %+v, want one that frees a lease", m)
			}
			if got, now := w.write.After().At, s.now.UnixMilli(); got != now {
				t.Errorf("it is freed as of %v ago", time.Duration(now-got)*time.Millisecond)
			}
		})
	}
}

// The lanes that follow get what is owed. That is the take of a late admission also where its outcome is unknown, but no
// charge that may be booked, and no take of a call that was denied.
func TestOwedRequestsOfTheLanesBefore(t *testing.T) {
	refused := fmt.Errorf("%w: refused", limiter.ErrInvalid)
	for name, tt := range map[string]struct {
		happens event
		charges bool
		err     error
		want    int64 // tokens that the heir charges
		unknown int64 // tokens that may be taken twice, or for no call
		unpaid  int64
	}{
		"a late admission":                      {admittedLate, false, refused, 5, 0, 0},
		"a late admission in doubt":             {admittedLate, false, errDropped, 5, 5, 0},
		"a late admission with a charge":        {admittedLate, true, refused, 6, 0, 0},
		"one with a charge, in doubt":           {admittedLate, true, errDropped, 0, 0, 6},
		"a late denial":                         {deniedLate, false, refused, 0, 0, 0},
		"a late denial in doubt":                {deniedLate, false, errDropped, 0, 5, 0},
		"the charge of a call that was denied":  {deniedLate, true, refused, 1, 0, 0},
		"the charge of a denied call, in doubt": {deniedLate, true, errDropped, 0, 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			r := s.request("e", 5)
			if r.Admitted = true; tt.charges {
				r.Spends[0].Cost = limiter.Milli
			}
			r.Spends[0].Held = true
			r.state, r.Wait = sent, nil
			l := s.hold(r.Site, 0)
			got := int64(0)
			heir := func(r *Request) { got += r.Spends[0].Cost }
			s.heir.Store(&heir)
			s.stop()
			l.closer.happen(r, tt.happens)
			l.closer.failed([]*Request{r}, tt.err, *s.now)
			if got != tt.want*limiter.Milli {
				t.Errorf("the lanes that follow charge %d millitokens, want %d tokens", got, tt.want)
			}
			if unknown, unpaid := s.Counters.LostUnknown.Load(), s.Counters.LostOwed.Load(); unknown != tt.unknown*limiter.Milli || unpaid != tt.unpaid*limiter.Milli {
				t.Errorf("%d millitokens are in doubt and %d unpaid, want %d and %d tokens", unknown, unpaid, tt.unknown, tt.unpaid)
			}
		})
	}
}

// A late admission is booked again where a write of it has no outcome. A charge is not.
func TestALateAdmissionInDoubtIsBookedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		charges, again bool
	}{"a late admission": {false, true}, "one with a charge": {true, false}} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			r := s.request("e", 5)
			if tt.charges {
				r.Spends[0].Cost = limiter.Milli
			}
			s.Send(r)
			l := laneOf(r)
			s.DecideLate([]*Request{r}, func([]*plan.Request) bool { return true })
			*s.now = s.now.Add(newWait)
			m, _ := l.step(*s.now, true)
			w, ok := m.(*write)
			if !ok || len(w.actors) != 1 {
				t.Fatalf("got the message %+v, want the write of what is owed", m)
			}
			owed := w.actors[0]
			l.sender.arrived(w)
			l.closer.dropBookings(&w.batch, *s.now)
			if again := owed.state == over; again == tt.again {
				t.Errorf("it is %v; want it to be written again: %t", owed.state, tt.again)
			}
		})
	}
}
