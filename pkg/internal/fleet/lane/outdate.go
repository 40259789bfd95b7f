package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Outdate has no request denied any more by an older state of a shard: the item was changed beside its
// lane. The lane sees the image that the change left, which was sent at a time. Without one, nil, it reads
// the item.
func (s *Lanes) Outdate(site *Site, index int, image *schema.Bucket, sent time.Time) {
	l := s.hold(site, index)
	defer l.holds.Add(-1)
	l.mu.Lock()
	defer s.unlock(l)
	now := s.cfg.Now()
	l.used = now
	if image == nil || len(l.out) > 0 { // rule: a lease write has its reply before an image shows it
		l.view.since = now
		l.keeper.tasks.todo = append(l.keeper.tasks.todo, task{TaskKind: Look})
	} else {
		l.view.since = later(l.view.since, sent)
		at := l.view.now - now.Sub(sent).Milliseconds() // the write left then
		l.sees(image, &copies{asked: l.view.asked, at: at, sent: sent}, now)
	}
	l.start()
}
