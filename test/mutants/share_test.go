//go:build mutants

package mutants_test

import "slices"

// shareRules are the rules of package lane on its takes under way, and on its part of the
// tokens where other replicas use the item.
func shareRules() []mutant {
	return slices.Concat(in("lane", []mutant{
		{
			name: "takes under way have channels of their own", file: "channel.go", found: "TestChannelsRest",
			without: "if slices.ContainsFunc(out, func(m message) bool { return m == nil }) {",
		},
		{
			name: "a write is in a free channel", file: "write.go", found: "TestTakesUnderWayHaveTheirOwnChannels",
			without: "id: plan.ID{Slot: l.host.self.slotOn(l.view.state), Write: l.host.self.next()}, actors: actors,",
		},
		{
			name: "later takes do not count against a late decision", file: "estimate.go", found: "TestBelievedCountsWhatWasBefore",
			without: "if last != nil && slices.Contains(b.actors[:0], last) {",
		},
		{
			name: "a late denial at the arrival counts the requests before it", file: "arrival.go", found: "TestLacks",
			without: "if need := max(sp.Need, sp.Ask); need > 0 && there < need {",
		},
		{
			name: "a denial by a share of what is there is no state of the item", file: "arrival.go", found: "TestADenialByAShare",
			without: "r.ByShare = false",
		},
		{
			name: "a denial by the state of the item is one", file: "arrival.go", found: "TestADenialByAShare",
			rule: "a denial by a share of what is there is no state of the item", without: "r.ByShare = short.byShare",
		},
		{
			name: "a late denial tells what the item has left", file: "late.go", found: "TestALateDenialTellsWhatTheItemHas",
			without: "Exceed(&told, sp.Limit, max(there, 0))",
		},
		{
			name: "a request that is decided in time waits for it", file: "arrival.go", found: "TestLacks",
			without: "if l.pace.RoundTrip() < 0 {",
		},
	}), in("lane", []mutant{
		{
			name: "a denial tells what is left", file: "shortage.go", found: "TestADenialTellsWhatIsLeft",
			without: "sp.Left.Tokens = 0",
		},
		{
			name: "a denied request is told of less than it asks for", file: "shortage.go", found: "TestADenialTellsWhatIsLeft",
			rule: "a denial tells what is left", without: "sp.Left.Tokens = min(sp.Left.Tokens, left)",
		},
		{
			name: "a request that does not fit asks for nothing", file: "shortage.go", found: "TestAskingForMoreThanThereIs",
			without: "if p := &s.limits[i]; p.asked < 0 {",
		},
		{
			name: "a request beyond what is there is denied at once", file: "shortage.go", found: "TestAShareIsTheLanesPart",
			without: "limit, beyond = p.limit, beyond || dry",
		},
		{
			name: "the first request has enough", file: "shortage.go", found: "TestTheFirstRequestHasEnough",
			without: "if p.taken+n > p.most {",
		},
		{
			name: "the write behind this one pauses by the replicas that write", file: "group.go", found: "TestNoRequestIsPassedBeyondItsDeadline",
			rule: "no request is passed beyond its deadline", without: "case (beyond || r.passed || g.late(r, 0)) && g.deny(r, shortage{limit, g.share.Left(limit), !beyond}):",
		},
		{
			name: "no request is passed beyond its deadline", file: "group.go", found: "TestNoRequestIsPassedBeyondItsDeadline",
			without: "case (beyond || r.passed) && g.deny(r, shortage{limit, g.share.Left(limit), !beyond}):",
		},
		{
			name: "no request is tried beyond its deadline", file: "group.go", found: "TestNoRequestIsTriedBeyondItsDeadline",
			without: "last: false && tried,",
		},
		{
			name: "a charge that comes first is written", file: "group.go", found: "TestAChargeIsWritten",
			without: "deniable: true,",
		},
		{
			name: "a split is finished when its own half is there", file: "maintain.go", found: "TestAHalfIsOfItsSplit",
			without: "case moving && t.made == 0:",
		},
		{
			name: "a lane alone denies in time", file: "group.go", found: "TestALaneAloneDeniesInTime",
			without: "case !denied || g.share.Alone() && !g.sure():",
		},
		{
			name: "the refill of a round trip belongs to the others", file: "shortage.go", found: "TestShareLeavesMargin",
			without: "p.most = max(there-(replicas-1)*flying, 0) / replicas",
		},
	}), in("lane", []mutant{
		{
			name: "many replicas write more slowly", file: "pacing_pace.go", found: "TestPaceOfTenReplicas",
			without: "return max(Least, p.RoundTrip()/2)",
		},
		{
			name: "a slow table is sent two writes at a time", file: "pacing_pace.go", found: "TestPaceOfASlowTable",
			rule: "many replicas write more slowly", without: "return max(Least, each)",
		},
		{
			name: "a slow table has longer for a reply", file: "pacing_pace.go", found: "TestPaceOfASlowTable",
			without: "return least",
		},
		{
			name: "the first state tells of no other replica", file: "pacing_peers.go", found: "TestPeersAreThoseWhoseIdsChange",
			without: "seen = peer{last: id, at: now} // its time is not known",
		},
	}))
}
