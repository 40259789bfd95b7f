package plan

import (
	"errors"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ErrOrder says that a stage was asked for a change behind a request: changes of the bucket
// come first.
var ErrOrder = errors.New("a change of a bucket must come before the requests of its write")

// Brought is the result of Stage.Bring.
type Brought uint8

// The results of Stage.Bring.
const (
	Same    Brought = iota // the bucket is under these, and their generation is raised
	Older                  // the bucket is under newer ones, and decides under them
	Newer                  // the write brings the bucket under them
	Pending                // parts are out on lease: the write asks for them, and the bucket decides under its own
)

// Bring puts the stage under limits if they are newer than its own, before any request is
// applied. Limits do not change while parts are out on lease: their holders serve by the old
// ones. A return of the last lease by the same stage, before, makes way for the change.
func (s *Stage) Bring(to *limiter.Limits, generation uint64) (Brought, error) {
	version, own := schema.Version{Generation: generation, Hash: to.Hash()}, s.next.Version
	switch {
	case len(s.results) > 0:
		return Same, ErrOrder
	case version.Hash == own.Hash:
		s.raise = max(s.raise, generation)
		return Same, nil
	case !s.Older(to, generation):
		return Older, nil
	case s.next.Leased(): // rule: limits change when nothing is leased
		if s.next.Pending < generation {
			next := *s.next
			next.Pending, s.next, s.marks = generation, &next, true
		}
		return Pending, nil
	}
	for i := range s.staged {
		if st := &s.staged[i]; st.usage != 0 && (to.Find(st.Limit.Name) < 0 || to.Unlimited(to.Find(st.Limit.Name))) {
			s.gone = append(s.gone, usage{st.Limit.Name, st.usage})
		}
	}
	s.next = under(s.next, to, generation, s.now)
	s.exact = true
	s.restage()
	return Newer, nil
}

// Older reports whether the stage is under older limits.
func (s *Stage) Older(than *limiter.Limits, generation uint64) bool {
	own := s.next.Version
	return schema.Version{Generation: generation, Hash: than.Hash()}.Newer(schema.Version{Generation: max(own.Generation, s.raise), Hash: own.Hash})
}

// Fold makes all that was applied a part of the state, so that limits can be brought after it. It makes
// the write an exact one. It is for requests that no caller waits for: their results are not corrected
// any more.
func (s *Stage) Fold() {
	if len(s.results) == 0 {
		return
	}
	next := s.change()
	for i := range s.staged {
		st := &s.staged[i]
		next.Balances[st.index].FullAt, next.Balances[st.index].Carried = st.v, st.carried
	}
	s.results, s.folded = nil, true
	s.restage()
}

// Untidy reports whether the item holds limits that have no use any more, which Tidy
// drops.
func (s *Stage) Untidy() bool { return !s.next.Shard.Moving && untidy(s.next, s.now) }

// Tidy drops limits that have no use any more, before any request is applied. It makes the
// write an exact one. While the other half of a split is not made both must hold the same
// limits: then it does nothing.
func (s *Stage) Tidy() error {
	switch {
	case len(s.results) > 0:
		return ErrOrder
	case !s.Untidy():
		return nil
	}
	forget(s.change(), s.now)
	s.restage()
	return nil
}

// change returns the state that an exact write leaves, to be changed.
func (s *Stage) change() *schema.Bucket {
	next := *s.next
	next.Balances = slices.Clone(next.Balances)
	next.Leases = slices.Clone(next.Leases)
	s.next, s.exact = &next, true
	return s.next
}
