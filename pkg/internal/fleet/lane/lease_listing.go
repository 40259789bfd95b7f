package lane

import "log/slog"

// listing is the place of a lane among those of the process that hold something on lease, or may.
type listing struct {
	*item

	held *held
	put  func(in bool)
}

// lapsed is logged of a lease that ended without a return. One line for each is too much for an
// outage, so it is for debugging.
const lapsed = "a lease ended before it was returned: its tokens count as spent"

// lapse counts the tokens of a lease that ended without a return.
func (l *listing) lapse() {
	if l.held.holder == nil {
		return
	}
	if millitokens, ended := l.held.holder.Lapsed(); ended {
		l.host.Counters.LostLease.Add(millitokens)
		l.host.cfg.Logger.Debug(lapsed, slog.String("entity", l.site.Bucket.Entity), slog.String("resource", l.site.Bucket.Resource), slog.Int64("millitokens", millitokens))
	}
}

// list keeps the lane among those that hold something, or out of them.
func (l *listing) list() {
	l.lapse()
	if holds := l.held.holds(); holds != l.held.counted {
		l.held.counted = holds
		if holds {
			l.host.Counters.Leases.Add(1)
		} else {
			l.host.Counters.Leases.Add(-1)
		}
	}
	if has := l.held.counted || l.held.ledger.Open(); has != l.held.listed {
		l.held.listed = has
		l.put(has)
	}
}
