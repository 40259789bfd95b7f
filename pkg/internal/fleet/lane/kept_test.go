package lane

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// keeps has a lease keep all that it has for a large request, which waits for the centre.
func (s *lessees) keeps(l *Lane) *Request {
	s.Helper()
	own := s.own(l)
	r := s.request(l.site.Bucket.Entity, own+50)
	r.lane.Store(l)
	l.closer.happen(r, entered)
	l.queue = append(l.queue, r)
	l.lessee.keep(r, []lease.Draw{{Limit: 0, Need: r.Spends[0].Need, Take: r.Spends[0].Take}}, false)
	if r.part == nil || s.covers(l, own) {
		s.Fatalf("the lease has kept nothing of %d tokens", own)
	}
	return r
}

// covers reports whether a lease serves a request for that many tokens.
func (s *lessees) covers(l *Lane, tokens int64) bool {
	return l.held.holder.Covers(l.view.now, []lease.Draw{{Limit: 0, Need: tokens * limiter.Milli, Take: tokens * limiter.Milli}})
}

// own returns how many tokens a lease has itself.
func (s *lessees) own(l *Lane) (tokens int64) {
	for s.covers(l, tokens+1) {
		tokens++
	}
	return tokens
}

// Tokens that a lease keeps for a request serve others again where the request ends
// without them.
func TestWhatIsKeptIsFreeAgain(t *testing.T) {
	for name, end := range map[string]func(s *lessees, l *Lane, r *Request){
		"denied":    func(_ *lessees, l *Lane, r *Request) { r.Under = r.Limits; l.lessee.unite(r) },
		"abandoned": func(s *lessees, _ *Lane, r *Request) { s.Abandon([]*Request{r}) },
		"late": func(s *lessees, _ *Lane, r *Request) {
			s.DecideLate([]*Request{r}, func([]*plan.Request) bool { return false })
		},
		"failed": func(s *lessees, l *Lane, r *Request) { l.closer.fail(r, errSilent, *s.now) },
		"refused": func(_ *lessees, l *Lane, r *Request) {
			l.closer.happen(r, written)
			l.closer.again(&batch{write: &plan.Write{}, actors: []*Request{r}}, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			own := s.own(l)
			r := s.keeps(l)
			end(s, l, r)
			if r.part != nil || !s.covers(l, own) {
				t.Errorf("the lease does not serve its %d tokens after the end of the request", own)
			}
			if got := r.Spends[0].Need; got != (own+50)*limiter.Milli {
				t.Errorf("the request needs %d, want all that it was asked for", got)
			}
		})
	}
}

// Requests that go from a shard that is gone to another one ask that for all.
func TestDepartedRequestsAskForAll(t *testing.T) {
	s := newLessees(t)
	l := s.grant("e")
	r := s.keeps(l)
	want := r.part.spends[0].Take
	if d := l.leave(); !slices.Contains(d.requests, r) || r.part != nil || r.Spends[0].Take != want {
		t.Errorf("%d requests depart, and it asks for %d; want it among them, and %d", len(d.requests), r.Spends[0].Take, want)
	}
}

// A call over several leases that one of them denies takes nothing of the others.
func TestADeniedCascadeTakesNothing(t *testing.T) {
	s := newLessees(t)
	full, short := s.grant("full"), s.grant("short")
	other := *short.view.state // that another replica has a lease of: this one is not alone
	other.Leases = append(slices.Clone(other.Leases), schema.Lease{Replica: s.self.replica() + 1, Sequence: 1, Rate: 1, Room: 1})
	short.view.state = &other
	before := stock(full)
	requests := []*Request{s.request("full", 1), s.request("short", 2000)} // which is more than the limit holds
	if !s.ServeTogether(requests) {
		t.Fatal("the leases do not decide")
	}
	for i, r := range requests {
		if sp := r.Spends[0]; sp.Take != 0 || sp.Back != 0 || r.Undo() != nil {
			t.Errorf("request %d has taken %d, of which %d may come back", i, sp.Take, sp.Back)
		}
	}
	if requests[1].Admitted || stock(full) != before {
		t.Errorf("admitted: %t; the other lease has %d, before %d", requests[1].Admitted, stock(full), before)
	}
}

// Nothing is leased of a shard that is gone, nor once the lanes end.
func TestNothingNewIsLeased(t *testing.T) {
	t.Run("retired", func(t *testing.T) {
		l := bench(t, 900, 1000)
		l.host.cfg.Leases = true
		retired := *l.view.state
		retired.Shard.Retired = true
		l.view.state = &retired
		r := ofTokens(retired.Limits, 1)
		r.Asks = true
		if l.lessee.leases(r) || l.held.holder != nil {
			t.Error("a lease of a retired shard is asked for")
		}
	})
	t.Run("the end", func(t *testing.T) {
		s, l, ask, now := fresh(t)
		for range 3 {
			ask()
		}
		s.closing.Store(true)
		m, _ := l.step(*now, true)
		if w, ok := m.(*leaseWrite); ok && w.lease != nil {
			t.Errorf("a lease is asked for at the end: %+v", w.lease)
		}
	})
}

// A charge waits for the end of another one of the lane: it would rest on the id of the first, and each
// could wait for the other.
func TestOneChargeAtATime(t *testing.T) {
	for name, books := range map[string]bool{"a take is under way": false, "a charge is under way": true} {
		t.Run(name, func(t *testing.T) {
			l := bench(t, 900, 1000)
			l.fly()
			l.out[0].carries().books = books
			charge := &Request{Request: &plan.Request{Limits: l.view.state.Limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Cost: limiter.Milli, Usage: limiter.Milli}}}}
			g := l.planner.newGroup(time.UnixMilli(testTime))
			g.fill([]*Request{charge})
			if waits := slices.Contains(g.left, charge); waits != books {
				t.Errorf("the charge waits: %t, want %t", waits, books)
			}
		})
	}
}
