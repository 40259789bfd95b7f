package dynamo

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// With a clock that cannot be trusted a lease is served to its end, and nothing is
// leased, reported or returned.
func TestLeasesWithoutATrustedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := bucketTable(t)
		m := newMachine(db, 0)
		s := m.store(t, func(cfg *Config) { cfg.Leases = true })
		defer closeStores(t, s)
		take := func(entity string) (bool, error) {
			return s.Take(t.Context(), m.now(), []limiter.Op{opOn(t, entity, limiter.PerDay("l", 10_000), limiter.Spend{Take: limiter.Milli})})
		}
		for range 50 {
			if ok, err := take("e"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			synctest.Wait()
		}
		if s.Stats().Leases != 1 {
			t.Fatalf("%+v, want a lease", s.Stats())
		}
		m.liar()
		if _, err := take("other"); err != nil {
			t.Fatal(err)
		}
		if _, err := take("other"); err != nil && s.Stats().Halts == 0 {
			t.Fatal(err)
		}
		before := s.Stats()
		served := 0
		for end := time.Now().Add(leaseTerm); time.Now().Before(end); time.Sleep(90 * time.Millisecond) {
			if ok, err := take("e"); ok && err == nil {
				served++
			}
		}
		after := s.Stats()
		if before.Halts != 1 || served < 10 || after.Served-before.Served < 10 {
			t.Errorf("%d served of a lease, halted %d times: %+v", served, before.Halts, after)
		}
		if after.Granted != before.Granted || after.Renewed != before.Renewed || after.Returned != before.Returned {
			t.Errorf("leases changed: %+v, before %+v", after, before)
		}
		m.lie = nil
		for range 5 {
			_, _ = take("e") // the truth is found out
		}
		time.Sleep(leaseTerm)
		if got := s.Stats(); got.Leases != 0 || got.Returned != 1 {
			t.Errorf("%+v, want the lease returned when the clock is trusted again", got)
		}
	})
}

// paused is a bucket of 1000 tokens, 10 a second, and two replicas, of which a holds a
// lease while its machine is paused with both of its clocks.
type paused struct {
	*testing.T
	a, b *machine
	on   map[*machine]*Store
	op   limiter.Op
	rest int64 // tokens that a holds
}

const pausedCapacity, pausedRate = 1000, 10

func newPaused(t *testing.T) *paused {
	t.Helper()
	db := bucketTable(t)
	p := &paused{T: t, a: newMachine(db, 0), b: newMachine(db, 0), op: opOn(t, "e", limiter.Custom("l", pausedCapacity, pausedRate, time.Second), limiter.Spend{Take: limiter.Milli})}
	p.on = make(map[*machine]*Store)
	for _, m := range []*machine{p.a, p.b} {
		p.on[m] = m.store(t, func(cfg *Config) { cfg.Leases, cfg.Now = true, m.now })
	}
	for range 20 { // at different moments of the second
		p.look(p.a)
		p.look(p.b)
		time.Sleep(137 * time.Millisecond)
	}
	for range 200 {
		p.take(p.a)
		time.Sleep(time.Millisecond)
	}
	for _, l := range p.on[p.a].leases.find(&p.op.Bucket) {
		p.rest = l.holder.restOf("l") / limiter.Milli
	}
	if p.rest == 0 {
		t.Fatal("nothing is leased")
	}
	return p
}

// pauses pauses machine a. Meanwhile b takes a token now and then, and frees the lease
// when it is time; the last one at the end of the pause.
func (p *paused) pauses(d time.Duration) {
	p.a.pause()
	for range 20 {
		time.Sleep(d / 20)
		p.take(p.b)
	}
	p.a.goOn()
}

func (p *paused) take(m *machine) bool {
	p.Helper()
	o := p.op
	o.Spends = []limiter.Spend{p.op.Spends[0]}
	ok, err := p.on[m].Take(p.Context(), m.now(), []limiter.Op{o})
	if err != nil && !errors.Is(err, limiter.ErrUnavailable) { // by a clock that is not trusted
		p.Fatal(err)
	}
	synctest.Wait()
	return ok
}

// look asks for something else: its reply tells the time.
func (p *paused) look(m *machine) {
	p.Helper()
	o := opOn(p.T, "other", limiter.PerDay("l", 10), limiter.Spend{Look: true})
	if _, err := p.on[m].Take(p.Context(), m.now(), []limiter.Op{o}); err != nil {
		p.Fatal(err)
	}
}

// atOnce returns how many tokens both replicas admit at one moment.
func (p *paused) atOnce() (admitted int64) {
	p.Helper()
	for _, m := range []*machine{p.a, p.b} {
		for range 2 * pausedCapacity {
			if p.take(m) {
				admitted++
			}
		}
	}
	return admitted
}

// A pause of a machine with both of its clocks costs what docs/guarantees.md says: no
// more than the replica held, and no more than is refilled in the pause. Nothing on the
// machine tells before DynamoDB does.
func TestAPausedMachineCostsALease(t *testing.T) {
	for _, pause := range []time.Duration{3 * time.Second, 12 * time.Second, 60 * time.Second, 300 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := newPaused(t)
			defer closeStores(t, p.on[p.a], p.on[p.b])
			p.pauses(pause)
			most := min(p.rest, int64(pausedRate*(pause-leaseEbb+leaseTerm).Seconds()))
			over := p.atOnce() - pausedCapacity
			t.Logf("paused for %v with %d tokens on lease: %d too many", pause, p.rest, over)
			if over > most {
				t.Errorf("paused for %v: %d tokens too many, want at most %d, of %d on lease", pause, over, most, p.rest)
			}
			if pause >= time.Minute && over < 1 {
				t.Errorf("paused for %v: %d tokens too many: the test shows nothing", pause, over)
			}
		})
	}
}

// Replies tell that the machine stood still: then what it held is served no more, and
// nothing is over.
func TestRepliesEndALeaseAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaused(t)
		defer closeStores(t, p.on[p.a], p.on[p.b])
		p.pauses(300 * time.Second)
		for range awsdb.JumpReplies {
			o := opOn(t, "other", limiter.PerDay("l", 10), limiter.Spend{Look: true})
			_, _ = p.on[p.a].Take(t.Context(), p.a.now(), []limiter.Op{o}) // of a clock that is not trusted, at first
		}
		if got := p.a.clock.Era(); got != 1 {
			t.Fatalf("%d jumps of the clock, want 1", got)
		}
		served := p.on[p.a].Stats().Served
		if over := p.atOnce() - pausedCapacity; over > 0 || over < -pausedCapacity/10 {
			t.Errorf("%d tokens too many, want none, and not many too few", over)
		}
		if got := p.on[p.a].Stats(); got.Served < served {
			t.Errorf("%+v", got)
		}
	})
}
