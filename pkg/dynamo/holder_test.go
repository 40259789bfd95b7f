package dynamo

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// holderScript drives a holder of tokens of limit l by what its writes and images are.
type holderScript struct {
	*testing.T
	holder
	now   time.Time
	era   uint64
	rf    int64
	steps map[string]*leaseStep
}

func newHolderScript(t *testing.T) *holderScript {
	t.Helper()
	return &holderScript{T: t, now: time.Unix(1_000_000, 0), rf: 1, steps: map[string]*leaseStep{}}
}

// view is the item with the own slot of an id, "" for none.
func (s *holderScript) view(id string, quantity int64) *view {
	s.Helper()
	set, err := limiter.NewLimits(limiter.PerDay("l", 1000))
	if err != nil {
		s.Fatal(err)
	}
	v := fullView(set, 1, s.rf)
	if id != "" {
		v.leases = []holding{newHolding("me", id, []amount{{"l", quantity}})}
	}
	return v
}

// sends sends a write that leaves a lease of a quantity, of which some is new.
func (s *holderScript) sends(id string, quantity, granted int64, returns bool) {
	s.Helper()
	f := flight{refilled: s.rf, version: s.view("", 0).version, returns: returns}
	if s.text != "" {
		f.spent = s.own(returns).spent
	}
	s.prepare(&f)
	step := &leaseStep{replica: "me", own: true, seen: s.text, held: newHolding("me", id, []amount{{"l", quantity}})}
	if granted > 0 {
		step.granted = []amount{{"l", granted}}
	}
	s.steps[id] = step
	s.send(step, s.now, s.era)
}

func (s *holderScript) sees(id string, quantity int64) {
	s.Helper()
	s.saw(s.view(id, quantity), "me")
}

// has requires what can be served: -1 for no lease.
func (s *holderScript) has(rest int64) {
	s.Helper()
	got := int64(-1)
	if s.serves(s.version) && s.alive(s.now, s.era) {
		got = s.restOf("l")
	}
	if got != rest {
		s.Errorf("%d can be served, want %d", got, rest)
	}
}

func (s *holderScript) spends(n int64) {
	s.Helper()
	d := draw{limit: "l", need: n, take: n}
	if !s.covers(d) {
		s.Fatalf("%d are not covered by %d", n, s.restOf("l"))
	}
	s.spend(d, false)
}

// What is granted counts from when an image shows it, however late, and with what was
// served meanwhile.
func TestARenewalLandsWhenItIsSeen(t *testing.T) {
	s := newHolderScript(t)
	s.sends("1", 100, 100, false)
	s.has(-1)
	s.sees("1", 100)
	s.has(100)
	s.spends(60)
	s.now = s.now.Add(3 * time.Second)
	s.sends("2", 90, 50, false) // reports 60
	s.spends(30)
	if s.covers(draw{limit: "l", give: 31}) {
		t.Error("what is reported as spent was taken back")
	}
	s.sees("1", 100) // nobody knows yet
	s.has(10)
	s.sends("3", 60, 50, false) // on the same slot: one of the two
	s.sees("2", 90)
	s.has(60)
	if len(s.flights) > 0 {
		t.Errorf("%d writes count as under way, on a slot that is another", len(s.flights))
	}
	s.now = s.now.Add(leaseTerm - time.Millisecond)
	s.has(60)
	s.now = s.now.Add(time.Millisecond)
	s.has(-1)
}

// Of what may have been returned nothing is served until the slot has another text, or
// the write can not be applied any more.
func TestAReturnInDoubt(t *testing.T) {
	s := newHolderScript(t)
	s.sends("1", 100, 100, false)
	s.sees("1", 100)
	s.spends(10)
	s.sends("2", 40, 40, true)
	s.has(-1)
	s.sees("1", 100)
	s.has(-1)
	s.rf++ // somebody refilled: it rested on what is no more
	s.sees("1", 100)
	s.has(90)

	s.sends("3", 40, 40, true)
	s.missed(s.steps["3"])
	s.has(90)
	s.sends("4", 40, 40, true)
	s.sees("4", 40)
	s.has(40)
}

// A holder whose slot is gone, or has a text that it does not know, has nothing.
func TestALostLease(t *testing.T) {
	for _, id := range []string{"", "another"} {
		s := newHolderScript(t)
		s.sends("1", 100, 100, false)
		s.sees("1", 100)
		s.has(100)
		s.sees(id, 100)
		s.has(-1)
		if s.busy() {
			t.Errorf("slot %q: something is held still", id)
		}
	}
}

// A lease ends with the era in which its write was sent, also where its reply comes in
// the next one.
func TestALeaseEndsWithItsEra(t *testing.T) {
	s := newHolderScript(t)
	s.sends("1", 100, 100, false)
	s.sees("1", 100)
	s.has(100)
	s.era++
	s.has(-1)
	s.sends("2", 100, 10, false)
	s.era++
	s.sees("2", 100)
	s.has(-1)
	s.sends("3", 100, 10, false)
	s.sees("3", 100)
	s.has(100)
}

// A lease ends by whichever reading of the clock comes first.
func TestALeaseEndsByBothClocks(t *testing.T) {
	s := newHolderScript(t)
	s.now = time.Now()
	s.sends("1", 100, 100, false)
	s.sees("1", 100)
	s.has(100)
	awake := s.now.Add(time.Second)
	if asleep := awake.Round(0).Add(time.Hour); !s.alive(awake, 0) || s.alive(asleep, 0) {
		t.Errorf("alive %t after a second, %t when the clock on the wall shows an hour more", s.alive(awake, 0), s.alive(asleep, 0))
	}
	s.sees("1", 100)
	other := s.view("1", 100)
	other.version.Hash++
	s.saw(other, "me")
	s.has(-1)
	if !s.recall {
		t.Error("a lease of limits that are no more is not recalled")
	}
}
