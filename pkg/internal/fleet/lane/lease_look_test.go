package lane

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// steps steps a lane, and answers its message at once. saw is whether there was one, and reads is 1 for a read.
func (s *lessees) steps(l *Lane) (saw bool, reads int) {
	m, _ := l.step(*s.now, true)
	if m == nil {
		return false, 0
	}
	l.sender.arrived(m)
	switch m := m.(type) {
	case *read:
		reads = 1
	case *leaseWrite:
		m.came(m.write.After(), false, *s.now)
	}
	l.view.sent = *s.now
	return true, reads
}

// A busy lease reads its item often, so that another replica that asks for it has it soon, and one in little
// use seldom. In each there are few reads for a decision.
func TestABusyLeaseLooksOften(t *testing.T) {
	for name, tt := range map[string]struct {
		gap  time.Duration // between two requests
		most time.Duration // for which the item is not seen
	}{
		"1,000 a second": {time.Millisecond, lookLeast},
		"100 a second":   {10 * time.Millisecond, 130 * time.Millisecond},
		"20 a second":    {50 * time.Millisecond, lookMost},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			requests, reads := 0, 0
			var most time.Duration
			began, seen := *s.now, *s.now
			for ; s.now.Sub(began) < 3*time.Second; *s.now = s.now.Add(time.Millisecond) {
				if s.now.Sub(began)%tt.gap == 0 {
					requests++
					s.Send(s.request("e", 1))
				}
				saw, looked := s.steps(l)
				if !saw {
					continue
				}
				reads += looked
				if s.now.Sub(began) > time.Second {
					most = max(most, s.now.Sub(seen))
				}
				seen = *s.now
			}
			if most < tt.most/2 || most > tt.most+10*time.Millisecond {
				t.Errorf("the item is not seen for up to %v, want %v", most, tt.most)
			}
			if reads > requests/8 {
				t.Errorf("%d reads for %d requests", reads, requests)
			}
		})
	}
}

// A lease is kept between bursts of a few requests. It is in little use then, and is read seldom.
func TestALeaseBetweenBurstsLooksSeldom(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	requests, reads := 0, 0
	for began := *s.now; s.now.Sub(began) < 12*time.Second; *s.now = s.now.Add(time.Millisecond) {
		if s.now.Sub(began)%(600*time.Millisecond) == 0 {
			for range 4 {
				requests++
				s.Send(s.request("e", 1))
			}
		}
		_, looked := s.steps(l)
		reads += looked
	}
	if most := requests / 3; reads > most {
		t.Errorf("%d reads for %d requests, want %d at most", reads, requests, most)
	}
}

// A lease that others wait for is returned behind a turn where one of them writes without a lease: each of
// its writes would refuse the return. In a far store such a write has refused it before: those that returned
// theirs write nothing for a while.
func TestTheLastLeaseIsReturnedBehindATurn(t *testing.T) {
	const other = 77
	for name, tt := range map[string]struct {
		asked, writes, holds bool
		trip                 time.Duration
		refused              bool
		turn                 bool
	}{
		"nobody asks for it":             {false, true, false, Least, false, false},
		"nobody else writes":             {true, false, false, Least, false, false},
		"the others have leases":         {true, true, true, Least, false, false},
		"another writes without a lease": {true, true, false, Least, false, true},
		"far away":                       {true, true, false, lookLeast / mostYield, false, false},
		"far away, and refused":          {true, true, false, lookLeast / mostYield, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			*s.now = s.now.Add(100 * time.Millisecond)
			for range 50 {
				l.pace.Reply(tt.trip)
			}
			image := *l.view.state
			image.Serial++
			image.Leases = append([]schema.Lease(nil), image.Leases...)
			if tt.holds {
				image.Leases = append(image.Leases, schema.Lease{Replica: other, Sequence: 1, Rate: 1})
			}
			if tt.asked {
				slot := lease.WishSlot(s.now.UnixMilli(), 5)
				image.Leases = append(image.Leases, schema.Lease{Replica: 99, Sequence: slot.Seq, Demand: slot.Demand, At: slot.At})
			}
			l.sees(&image, &copies{sent: *s.now}, *s.now)
			if tt.refused {
				l.turns.lost = 1
			}
			if tt.writes {
				l.peers.Observe([]schema.WriteID{schema.NewWriteID(other, 1)}, 1, *s.now)
			}
			m, _ := l.step(*s.now, true)
			if _, turn := m.(*turnWrite); turn != tt.turn {
				t.Errorf("got the message %T, want a turn: %t", m, tt.turn)
			}
		})
	}
}

// Where another replica asks for leases, a lane that has returned its own writes nothing while others return
// theirs: a round trip for each, at most three, and at most 250 ms.
func TestWritesComeAfterReturnsOfOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		asked  bool
		others int
		trip   time.Duration
		held   time.Duration
	}{
		"the last lease": {true, 0, 20 * time.Millisecond, 0},
		"one other":      {true, 1, 20 * time.Millisecond, 20 * time.Millisecond},
		"five others":    {true, 5, 20 * time.Millisecond, 60 * time.Millisecond},
		"far away":       {true, 5, 200 * time.Millisecond, schema.MaxHold},
		"near":           {true, 5, 10 * time.Millisecond, 0},
		"nobody asks":    {false, 2, 20 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			*s.now = s.now.Add(100 * time.Millisecond)
			for range 50 {
				l.pace.Reply(tt.trip)
			}
			image := *l.view.state
			image.Serial++
			image.Leases = slices.Clone(image.Leases)
			for i := range tt.others {
				image.Leases = append(image.Leases, schema.Lease{Replica: 1<<32 - 20 + uint32(i), Sequence: 1, Rate: 1})
				image.Line.Rate--
			}
			if tt.asked {
				slot := lease.WishSlot(s.now.UnixMilli(), 5)
				image.Leases = append(image.Leases, schema.Lease{Replica: 1<<32 - 1, Sequence: slot.Seq, Demand: slot.Demand, At: slot.At})
			} else {
				l.held.holder.Recall()
			}
			l.sees(&image, &copies{sent: *s.now}, *s.now)
			m, _ := l.step(*s.now, true)
			w := leases(t, m)
			l.sender.arrived(w)
			w.came(w.write.After(), false, *s.now)
			if got := l.held.holder.State(); got != lease.None {
				t.Fatalf("the lease is %v, want none", got)
			}
			if tt.held > 0 && !l.turns.held(s.now.Add(tt.held-1)) {
				t.Errorf("plain writes are sent before %v", tt.held)
			}
			if l.turns.held(s.now.Add(tt.held)) {
				t.Errorf("plain writes are held for more than %v", tt.held)
			}
			last := *l.view.state
			last.Serial, last.Leases = last.Serial+1, nil
			l.sees(&last, &copies{sent: *s.now}, *s.now)
			if l.turns.held(*s.now) {
				t.Error("plain writes are held though each lease is returned")
			}
		})
	}
}

// A write beside the lane shows it an item that asks for its lease: it is returned without a read.
func TestALaneIsShownAWish(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	*s.now = s.now.Add(100 * time.Millisecond)
	image := *l.view.state
	image.Serial++
	slot := lease.WishSlot(s.now.UnixMilli(), 5)
	image.Leases = append(slices.Clone(image.Leases), schema.Lease{Replica: 1<<32 - 1, Sequence: slot.Seq, Demand: slot.Demand, At: slot.At})
	s.Outdate(&l.site, 0, &image, s.now.Add(-time.Millisecond))
	older := *l.view.state
	older.Serial--
	s.Outdate(&l.site, 0, &older, *s.now)
	if l.view.state != &image {
		t.Error("an older image is taken in")
	}
	if l.view.sent.Equal(*s.now) || l.view.at >= l.view.now {
		t.Errorf("the state is of %v, lane's clock %d, want those when the write left", l.view.sent, l.view.at)
	}
	m, _ := l.step(*s.now, true)
	if w := leases(t, m); w.lease.Kind != lease.Return {
		t.Errorf("got the lease write %+v, want a return", w.lease)
	}
	l.view.since = *s.now
	if s.Outdate(&l.site, 0, &older, s.now.Add(-time.Second)); !l.view.since.Equal(*s.now) {
		t.Errorf("states since %v are fresh, want since %v", l.view.since, *s.now)
	}
}

// An image that a write beside the lane left may show a lease write of the lane before its reply: it would
// be taken for one of a copy of this process.
func TestALaneIsShownNothingBesideALeaseWrite(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	*s.now = s.now.Add(200 * time.Millisecond)
	l.held.holder.Recall()
	m, _ := l.step(*s.now, true)
	image, before := *leases(t, m).write.After(), l.view.state
	image.Serial++
	s.Outdate(&l.site, 0, &image, *s.now)
	if l.view.state != before || s.self.renamed.Load() > 0 {
		t.Errorf("the lane has the state %+v, want the one before; renamed %d times", l.view.state, s.self.renamed.Load())
	}
}

// Where nobody else writes to the item, no image of it settles a return without a reply. A turn does, after a
// while: the lease does not end by its term.
func TestATurnSettlesAReturnOfAQuietItem(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	*s.now = s.now.Add(200 * time.Millisecond)
	l.held.holder.Recall()
	m, _ := l.step(*s.now, true)
	last := leases(t, m)
	l.sender.arrived(last)
	last.lost(true, errDropped, *s.now)
	for began := *s.now; s.now.Sub(began) < 2*time.Second; *s.now = s.now.Add(time.Millisecond) {
		m, _ := l.step(*s.now, true)
		switch m := m.(type) {
		case *read:
			l.sender.arrived(m)
			l.sees(l.view.state, &m.copies, *s.now)
		case *turnWrite:
			if got := s.now.Sub(began); got < lookMost {
				t.Errorf("a turn is asked for after %v, want %v", got, lookMost)
			}
			l.sender.arrived(m)
			m.came(m.write.After(), false, *s.now)
			next, _ := l.step(*s.now, true)
			if w := leases(t, next); w.lease.Kind != lease.Return {
				t.Errorf("got the lease write %+v, want a return", w.lease)
			}
			return
		}
	}
	t.Errorf("the return is not settled in 2 s: the lease is %v", l.held.holder.State())
}

// A wait for a change of limits ends with a change, also where another replica has made it that has an older
// generation of the same limits.
func TestAWaitForAChangeEndsWithIt(t *testing.T) {
	waits := &schema.Bucket{Version: schema.Version{Generation: 3, Hash: 1}, Pending: 5, Leases: []schema.Lease{{Rate: 1}}}
	for name, tt := range map[string]struct {
		next schema.Bucket
		ends bool
	}{
		"the last lease is back":         {schema.Bucket{Version: waits.Version}, false},
		"the generation is raised alone": {schema.Bucket{Version: schema.Version{Generation: 4, Hash: 1}}, false},
		"under the generation":           {schema.Bucket{Version: schema.Version{Generation: 5, Hash: 2}}, true},
		"under an older one":             {schema.Bucket{Version: schema.Version{Generation: 4, Hash: 2}}, true},
		"taken back":                     {schema.Bucket{Version: schema.Version{Generation: 6, Hash: 1}}, true},
	} {
		var c change
		at := time.Unix(1, 0)
		c.saw(waits, at)
		if c.saw(&tt.next, at); c.waits(at) == tt.ends {
			t.Errorf("%s: the wait ends: %t, want %t", name, !tt.ends, tt.ends)
		}
		if c.waits(at.Add(changeWait)) {
			t.Errorf("%s: the wait has no end", name)
		}
	}
}
