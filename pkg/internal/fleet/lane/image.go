package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// sees takes in an image of the item that a message brought. The lane is locked.
func (l *Lane) sees(image *schema.Bucket, by *copies, now time.Time) {
	l.saw(image, by, now)
	l.finder.find(image) // rule: a write that was refused is watched for copies
}

// saw takes an image of the item for its state, unless a newer one is known.
func (l *Lane) saw(image *schema.Bucket, by *copies, now time.Time) {
	v := &l.view
	older := v.known && (by.asked < v.asked && (image == nil || v.state == nil) || image != nil && v.state != nil && v.state.Newer(image))
	if older {
		return
	}
	v.known, v.state, v.quick, v.asked, v.sent, v.at = true, image, nil, by.asked, by.sent, by.at
	var room [4]schema.WriteID
	ids := room[:0]
	if image != nil {
		v.quick = plan.At(image, 0)
		l.host.self.unmask(image)
		l.turns.saw(image.Turn, l.host.self.replica(), l.pace.RoundTrip(), now)
		if image.Holders() == 0 {
			l.turns.yield = time.Time{} // rule: a wait for returns ends with the last one
		}
		l.host.Counters.LostTwice.Add(l.channels.twice(image))
		ids = slices.AppendSeq(ids, image.WriteIDs())
	}
	l.peers.Observe(ids, l.host.self.replica(), now)
	l.sender.reckon()
	l.lease.seen(now)
	if image != nil {
		l.keeper.tasks.load.Observe(now, image.Shard.Level, image.Shard.Units, l.host.cfg.ShardUnits)
	}
	if l.host.cfg.Seen != nil {
		l.host.cfg.Seen(&l.site, l.index, Sight{State: image, At: now, Quiet: l.keeper.tasks.load.Quiet})
	}
}
