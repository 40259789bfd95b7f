package fleetsim_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
)

var timed = flag.Bool("times", true, "TestSimulate: require that things are done in time")

// trouble is a span of time in which something kept a replica from its work: it stood still,
// it had no network, or the table did not answer it.
type trouble struct{ from, until int64 }

const (
	// answersFor is how long a lost message keeps a replica: it waits for the reply, and
	// leaves a lease alone for a while after it.
	answersFor = int64(engine.DefaultAttempt + 250*time.Millisecond)
	// longTrip is the time one way from which a message counts as slow.
	longTrip = 10
	// leaseTerm is how long a lease lasts from its last write.
	leaseTerm = lease.Term * int64(time.Millisecond)
	// leaseTrouble is how much trouble a lease survives: within the rest of its term it is
	// renewed, 2.2 s after the write before at the latest, or returned.
	leaseTrouble = 1500 * int64(time.Millisecond)
	// lookMost is how old the state that a replica has of the item of its lease may
	// be.
	lookMost = 500 * int64(time.Millisecond)
	// reapTime is the time until the lease of an ended process is freed, and the next one is not
	// in its way any more.
	reapTime = 6 * second
	// remembered is for how long troubles are.
	remembered = 30 * second
)

// suffers records that a replica has trouble for a while from now on.
func (at *replica) suffers(f *fleet, d int64) {
	f.troubled = max(f.troubled, f.now+d)
	at.troubles = append(at.troubles, trouble{f.now, f.now + d})
	if first := at.troubles[0]; first.until < f.now-remembered {
		at.troubles = slices.DeleteFunc(at.troubles, func(t trouble) bool { return t.until < f.now-remembered })
	}
}

// suffered returns how much trouble a replica had between two moments.
func (at *replica) suffered(from, until int64) (sum int64) {
	all := slices.Clone(at.troubles)
	slices.SortFunc(all, func(a, b trouble) int { return int(a.from - b.from) })
	for _, t := range all {
		a, b := max(t.from, from), min(t.until, until)
		if b > a {
			sum += b - a
			from = b
		}
	}
	return sum
}

// well returns the longest time without trouble between two moments.
func (at *replica) well(from, until int64) (longest int64) {
	all := slices.Clone(at.troubles)
	slices.SortFunc(all, func(a, b trouble) int { return int(a.from - b.from) })
	for _, t := range append(all, trouble{until, until}) {
		longest = max(longest, min(t.from, until)-from)
		from = max(from, t.until)
	}
	return longest
}

// trip is the longest time of a message there and back that counts as none of the slow.
func (f *fleet) trip() int64 { return int64(4 * f.median) }

// promptly is the time within which a change of an item by one replica is done, beside the
// writes of others: five round trips and 100 ms.
func (f *fleet) promptly() int64 { return 5*f.trip() + 100*int64(time.Millisecond) }

// endedInTime requires a cause for a lease that ended by its term: its holder stood still, had no
// network, or the table did not answer it; or its machine slept, or replies showed that it had slept. A
// monotonic clock that drifts by more than clocks do can look like that.
func (p *process) endedInTime(b *bucket) {
	f := p.fleet
	if p.twin || p.awake > 0 && p.awake > f.now-leaseTerm || p.slept.told > 0 && p.slept.told > f.now-leaseTerm || p.jumped > 0 && p.jumped > f.now-leaseTerm {
		return
	}
	if told, ok := p.strange[b]; ok && told > f.now-leaseTerm { // it does not know the slot that is there
		return
	}
	if had := p.suffered(f.now-leaseTerm-int64(100*time.Millisecond), f.now); had < leaseTrouble {
		f.failInTime("replica %d, bucket %d: a lease ends without a return, and nothing kept its holder from it but for %v of its last %v", p.index, b.index, time.Duration(had), time.Duration(leaseTerm))
	}
}

// failInTime ends the run by something that was not done in time.
func (f *fleet) failInTime(format string, args ...any) {
	if *timed {
		f.failf(format, args...)
	}
}

// untold is for how long a machine stood still with both clocks, while no replies have
// corrected its clock.
type untold struct {
	length  int64 // ns
	woke    int64
	replies int // to messages sent since, in a row
}

const (
	// outlived is how much longer than its term a lease may last without a replica that frees it. The
	// other half of the time between is for clocks that drift.
	outlived = (lease.ReapAfter - lease.Term) / 2 * int64(time.Millisecond)
	// certain is the length of a pause that three replies prove: Date has whole seconds, before the
	// pause and after it.
	certain = 3 * second
)

// and returns the sum when the machine stands still for a while from now on.
func (u untold) and(now, d int64) untold {
	if u.woke < now-leaseTerm { // the leases of that time are over
		u.length = 0
	}
	return untold{length: u.length + d, woke: now + d}
}

// reply records that a reply came to a message that was sent at a moment. One that was sent before
// the pause agrees with the clock.
func (u *untold) reply(sent int64) {
	if sent < u.woke {
		u.replies = 0
		return
	}
	u.replies++
	if u.replies == awsdb.JumpReplies && u.length > certain {
		u.length = 0
	}
}

// outlives reports whether a lease from before the pause may be served after another replica has
// freed it.
func (u *untold) outlives(now int64) bool { return u.length > outlived && now-u.woke < leaseTerm }

// slept is for how long a machine has slept, while no replies have corrected its clock. It may have had no
// call for long since it woke. The replies to its first calls end all leases then, also one that began with
// them: the clock does not know when the machine slept.
type slept struct {
	length int64 // ns
	told   int64 // when replies last corrected the clock after a sleep; 0 = never
}

// corrected records that a reply changed the correction of the clock. A jump that no sleep explains tells
// nothing.
func (s *slept) corrected(by time.Duration, now int64) {
	if by > time.Second && s.length+2*maxSwing >= int64(by) {
		s.length, s.told = 0, now
	}
}

// A machine may be put to sleep while it sleeps. It wakes with the first one, and its monotonic clock is not set back.
func TestAMachineSleepsOnce(t *testing.T) {
	for name, stop := range map[string]func(p *process, d int64){
		"it sleeps":       func(p *process, d int64) { p.suspend(d) },
		"it stands still": (*process).freeze,
		"its process is paused, and goes on with the sleep": (*process).pause,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1, "few", "", sabotage{})
			defer f.close()
			p := f.some().process
			f.rest(second)
			before := p.machine()
			p.suspend(8 * second)
			f.rest(second)
			stop(p, 2*second)
			f.rest(6 * second)
			if want := f.now + second; p.pausedUntil != want || p.awake != want {
				t.Errorf("it wakes at %v, and goes on at %v, want %v", time.Duration(p.awake), time.Duration(p.pausedUntil), time.Duration(want))
			}
			f.rest(2 * second)
			if went := p.machine().Sub(before); went != time.Second || f.fault != nil {
				t.Errorf("its monotonic clock went on by %v, want 1s; %v", went, f.fault)
			}
		})
	}
}

// A jump of the correction is explained by a sleep of that length, once.
func TestSlept(t *testing.T) {
	const at = 5 * second
	for name, tc := range map[string]struct {
		length int64
		jumps  []time.Duration
		told   bool
	}{
		"a sleep":                   {2 * second, []time.Duration{1900 * time.Millisecond}, true},
		"a clock that runs on":      {0, []time.Duration{1900 * time.Millisecond}, false},
		"a shorter sleep":           {second, []time.Duration{3 * time.Second}, false},
		"a correction back":         {2 * second, []time.Duration{-1900 * time.Millisecond}, false},
		"a more exact correction":   {2 * second, []time.Duration{900 * time.Millisecond}, false},
		"a sleep that is told late": {2 * second, []time.Duration{20 * time.Millisecond, 1900 * time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := slept{length: tc.length}
			for _, by := range tc.jumps {
				s.corrected(by, at)
			}
			if got := s.told == at; got != tc.told {
				t.Errorf("told is %t, want %t", got, tc.told)
			}
			if s.told = 0; tc.told {
				if s.corrected(2*time.Second, at); s.told != 0 {
					t.Error("one sleep explains two jumps")
				}
			}
		})
	}
}

// A lease of a machine that stood still with both clocks may outlast its freeing. It does so until
// three replies have corrected the clock, and not for longer than its term.
func TestUntold(t *testing.T) {
	for name, tc := range map[string]struct {
		pause   int64
		sent    []int64 // the messages that replies came to, from the end of the pause
		after   int64
		outlive bool
	}{
		"no reply":                           {10 * second, nil, 0, true},
		"two replies":                        {10 * second, []int64{1, 2}, 0, true},
		"three replies":                      {10 * second, []int64{1, 2, 3}, 0, false},
		"a reply to a message from before":   {10 * second, []int64{1, 2, -11 * second, 3}, 0, true},
		"replies to a pause they do not see": {2 * second, []int64{1, 2, 3}, 0, true},
		"a pause within the time of freeing": {second / 4, nil, 0, false},
		"a term later":                       {10 * second, nil, leaseTerm, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := untold{}.and(0, tc.pause)
			for _, sent := range tc.sent {
				u.reply(tc.pause + sent)
			}
			if got := u.outlives(tc.pause + tc.after); got != tc.outlive {
				t.Errorf("outlives is %t, want %t", got, tc.outlive)
			}
		})
	}
}
