package lane

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// gathers returns a request of one call over several shards: it takes as much as there is, up to some tokens.
func (s *lessees) gathers(entity string, tokens int64) *Request {
	s.Helper()
	r := s.request(entity, 0)
	r.Spends[0] = plan.Spend{Limit: "l", Ask: tokens * limiter.Milli}
	return r
}

// A request for all tokens takes the part that the lease keeps for it, and of the centre only the rest. Each
// token of both counts once as consumed.
func TestWhatIsGatheredCountsOnce(t *testing.T) {
	for name, there := range map[string]int64{"the centre has the rest": 50, "it has some of that": 20, "it has none": 0} {
		t.Run(name, func(t *testing.T) {
			s := newLessees(t)
			l := s.grant("e")
			own := s.own(l)
			_, reported := l.held.ledger.Report()
			before := reported[0]
			r := s.gathers("e", own+50)
			l.lessee.keep(r, []lease.Draw{{Limit: 0, Need: r.Spends[0].Ask, Take: r.Spends[0].Ask}}, false)
			if got := r.Spends[0].Ask; r.part == nil || got != 50*limiter.Milli {
				t.Fatalf("the centre is asked for %d millitokens, want the 50 tokens that the lease lacks", got)
			}
			stage := bench(t, there, 1000)
			stage.view.bare(r.Request).Weigh(r.Request)
			l.lessee.unite(r)
			if sp := &r.Spends[0]; !r.Admitted || sp.Take != (own+there)*limiter.Milli || sp.Need != sp.Take {
				t.Errorf("admitted: %t, %d millitokens are taken, want %d tokens", r.Admitted, sp.Take, own+there)
			}
			if _, reported = l.held.ledger.Report(); reported[0]-before != own*limiter.Milli {
				t.Errorf("%d millitokens of the lease count as consumed, want the %d tokens that it kept", reported[0]-before, own)
			}
		})
	}
}

// A late decision on a request whose write is under way is about the tokens that the write takes, however many
// the last state has.
func TestALateDecisionIsAboutWhatTheWriteTakes(t *testing.T) {
	l := bench(t, 900, 1000)
	r := l.fly()
	r.Spends[0].Ask = 30 * limiter.Milli // of which the write found one token
	r.Admitted = true
	if got := l.estimator.estimate(r).Spends[0].Take; got != limiter.Milli {
		t.Errorf("the answer has %d millitokens, and the write takes 1 token", got)
	}
}
