package dynamo

import (
	"errors"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// doubtPatience is how long a write in doubt is sent again for requests that wait for
	// longer than a decision does, as charges do.
	doubtPatience = time.Minute

	// giveBackPatience is how long a give-back that was not applied is tried again,
	// about every giveBackPause; maxOwed is how many wait at most.
	giveBackPatience = time.Minute
	giveBackPause    = time.Second
	maxOwed          = 4096
)

// postpone has a give-back that was certainly not applied wait, to go into a later
// write of its lane. It reports false for one that is in doubt, which must not be sent
// again, and when it or too many have waited for long enough.
func (s *Store) postpone(r *request, err error) bool {
	if errors.Is(err, limiter.ErrUncertain) || !errors.Is(err, limiter.ErrUnavailable) || s.stopped.Err() != nil {
		return false
	}
	now := s.cfg.Now()
	if r.patient.IsZero() {
		r.patient = now.Add(giveBackPatience)
	}
	if now.After(r.patient) {
		return false
	}
	if s.owed.Add(1) > maxOwed {
		s.owed.Add(-1)
		return false
	}
	s.work.Add(1)
	s.loop.Start(func() {
		defer s.work.Done()
		defer s.owed.Add(-1)
		if s.loop.Sleep(s.stopped, giveBackPause/2+time.Duration(s.loop.Draw(int64(giveBackPause)))) != nil {
			s.lost(r, err)
			r.done(err)
			return
		}
		r.state.Store(waiting)
		r.confirmed, r.doubts = false, 0
		r.expires = s.cfg.Now().Add(s.cfg.Budget)
		s.queue(r)
	})
	return true
}
