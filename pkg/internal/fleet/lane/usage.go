package lane

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The causes, as they are logged.
const (
	causeStop    = "the store was closed before its server answered"
	causeOutage  = "the server of the store did not answer for too long"
	causeReply   = "the reply was lost: it may be counted"
	causeDeleted = "the item was deleted"
)

// loseUsage counts consumption that is not counted in the item.
func (l *item) loseUsage(counter *atomic.Int64, cause string, amount int64) {
	if amount <= 0 {
		return
	}
	counter.Add(amount)
	l.host.warn("usage: "+cause, "usage of a bucket is lost", slog.String("entity", l.site.Bucket.Entity), slog.String("resource", l.site.Bucket.Resource),
		slog.Int64("usage_millitokens", amount), slog.String("cause", cause))
}

// loseUsageOf counts the usage that an owed request was to count, and does not because of an error: the
// consumed and the refunded amounts. A refund that a stop cuts off counts as lost tokens alone.
func (l *item) loseUsageOf(r *Request, err error) {
	if r.undone() { // it was denied
		return
	}
	consumed, given, lost := int64(0), int64(0), &l.host.Counters.LostUsage
	for i := range r.Spends {
		consumed += max(r.Spends[i].Usage, 0) + r.Spends[i].Take
		given += max(-r.Spends[i].Usage, 0)
	}
	switch {
	case errors.Is(err, limiter.ErrUncertain):
		l.loseUsage(&lost.Reply, causeReply, consumed+given)
	case l.host.stopped.Err() != nil:
		l.loseUsage(&lost.Stop, causeStop, consumed)
	default:
		l.loseUsage(&lost.Outage, causeOutage, consumed+given)
	}
}

// usages count the consumption from the lease that no lease write counts.
type usages struct {
	*item
	*requests
	*wakes

	view *view
	held *held
}

// saw has the ledger learn from an image of the item; nil = there is none.
func (l *usages) saw(image *schema.Bucket) {
	doubtful := l.held.ledger.Saw(image)
	if image == nil {
		l.loseUsage(&l.host.Counters.LostUsage.Deleted, causeDeleted, doubtful)
	} else {
		l.loseUsage(&l.host.Counters.LostUsage.Reply, causeReply, doubtful)
	}
}

// reread has the item read again after a read that failed, if the outcome of a report is not known.
func (l *usages) reread(now time.Time) {
	if l.held.ledger.Open() {
		l.held.reread = now.Add(leaseRetry)
		l.wake(l.held.reread)
	}
}

// oweRests has the lane owe the consumption that no lease write will count.
func (l *usages) oweRests() {
	for _, rest := range l.held.ledger.Rests(!l.held.holds()) {
		l.owed = append(l.owed, &Request{
			Request: rest, Site: &l.site, Index: l.index, At: l.view.now, By: l.view.clock.Correction, state: promised, // rule: the time of a lane has the correction
		})
	}
}

// drop counts the usage as lost that is not counted when the lanes have ended.
func (l *usages) drop() {
	lost, doubtful := l.held.ledger.Drop()
	l.loseUsage(&l.host.Counters.LostUsage.Stop, causeStop, lost)
	l.loseUsage(&l.host.Counters.LostUsage.Reply, causeReply, doubtful)
}
