package ratemodel

import (
	"cmp"
	"slices"
)

// event is an effect that a client saw. Its moment lies between its plan and its
// commit, both as numbers of commits of the store.
type event struct {
	kind    kind
	parent  bool  // of the bucket of the parent
	at      int64 // the planner's clock
	limit   int
	tokens  int64
	planned int
	commit  int
	version int64 // of a change: the version of the limits from here on
	era     int   // that many changes of limits were before
}

// events are all effects that the clients of a run saw.
type events []event

// take adds an admission of tokens of a limit.
func (s *events) take(op *operation, l int, tokens int64) {
	commit := op.commit
	if op.commit == 0 { // of a lease alone
		commit = op.planned
	}
	*s = append(*s, event{
		kind: kindTake, parent: op.item == parentItem, at: op.at, limit: l, tokens: tokens, planned: op.planned, commit: commit,
	})
}

// refund adds a refund of a limit.
func (s *events) refund(op *operation, l int) {
	if op.tokens[l] > 0 {
		*s = append(*s, event{
			kind: kindRefund, parent: op.item == parentItem, at: op.at, limit: l, tokens: op.tokens[l], planned: op.planned, commit: op.commit,
		})
	}
}

// charge adds a charge. It is outside of the windows, but it lowers the balance at the end.
func (s *events) charge(i int, at int64, l int, tokens int64, commit int) {
	if tokens > 0 {
		*s = append(*s, event{
			kind: kindCharge, parent: i == parentItem, at: at, limit: l, tokens: tokens, planned: commit, commit: commit,
		})
	}
}

// change adds a change of the limits.
func (s *events) change(at, version int64, commit int) {
	*s = append(*s, event{kind: kindChange, at: at, commit: commit, planned: commit, version: version, limit: -1})
}

// order sorts the events by the clocks of their planners, within each version of the
// limits.
func order(events []event) {
	var changes []int
	for _, e := range events {
		if e.kind == kindChange {
			changes = append(changes, e.commit)
		}
	}
	for i := range events {
		for _, c := range changes {
			if events[i].commit >= c {
				events[i].era++
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		first := func(e event) int {
			if e.kind == kindChange {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.era, b.era), cmp.Compare(first(a), first(b)),
			cmp.Compare(a.at, b.at), cmp.Compare(a.commit, b.commit))
	})
}
