package catalog

import (
	"cmp"
	"slices"
	"sort"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// auditEntry is the key of an audit event, and the time in it, Unix ms.
type auditEntry struct {
	at  int64
	key schema.Key
}

// auditAhead is the keys of all events behind a time and up to another one, Unix ms.
type auditAhead struct {
	after, upTo int64
	events      []auditEntry // in order, but for those since trim
}

// trim sorts the events, and leaves the last ones out where there are more than held. Those of one ms stay together.
func (a *auditAhead) trim(held int) {
	slices.SortFunc(a.events, func(x, y auditEntry) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.key.PK, y.key.PK), cmp.Compare(x.key.SK, y.key.SK))
	})
	a.events = upToTime(a.events, a.upTo) // rule: what was left out once stays out
	if len(a.events) > held {
		a.upTo = max(a.events[held].at-1, a.after+1)
		a.events = upToTime(a.events, a.upTo)
	}
}

// behind returns the events behind a time.
func (a *auditAhead) behind(after int64) []auditEntry {
	return a.events[sort.Search(len(a.events), func(i int) bool { return a.events[i].at > after }):]
}

// upToTime returns the events up to a time.
func upToTime(events []auditEntry, upTo int64) []auditEntry {
	return events[:sort.Search(len(events), func(i int) bool { return events[i].at > upTo })]
}
