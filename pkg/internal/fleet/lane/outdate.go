package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Outdate has no request denied any more by the states of a shard that were asked for before
// now: the item was changed beside its lane. The lane reads it.
func (s *Lanes) Outdate(site *Site, index int) {
	l := s.hold(site, index)
	l.mu.Lock()
	l.view.since = s.cfg.Now()
	s.unlock(l)
	l.holds.Add(-1)
	s.Assign(site, index, Look)
}

// Show has the lane of a shard see an image of its item that a write beside it left. The write was sent at
// a time. No request is denied any more by an older state.
func (s *Lanes) Show(site *Site, image *schema.Bucket, sent time.Time) {
	if !s.show(site, image, sent) {
		s.Outdate(site, image.Shard.Index)
	}
}

// show is Show for a lane without messages under way. Their replies come before an image that may have
// their writes already.
func (s *Lanes) show(site *Site, image *schema.Bucket, sent time.Time) bool {
	l := s.hold(site, image.Shard.Index)
	defer l.holds.Add(-1)
	l.mu.Lock()
	defer s.unlock(l)
	if len(l.out) > 0 { // rule: a lease write has its reply before an image shows it
		return false
	}
	now := s.cfg.Now()
	l.view.since, l.used = later(l.view.since, sent), now
	at := l.view.now - now.Sub(sent).Milliseconds() // the write left then
	l.sees(image, &copies{asked: l.view.asked, at: at, sent: sent}, now)
	l.start()
	return true
}
