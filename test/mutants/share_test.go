//go:build mutants

package mutants_test

import "slices"

// shareRules are the rules of package lane on its takes under way, and on its part of the
// tokens where other replicas use the item.
func shareRules() []mutant {
	return slices.Concat(in("lane", []mutant{
		{
			name: "takes under way have channels of their own", file: "channel.go", found: "TestChannelsRest",
			rule: "return m.carries() != nil && m.carries().id.Channel == i })", without: "return m == nil })",
		},
		{
			name: "a write is in a free channel", file: "write.go", found: "TestTakesUnderWayHaveTheirOwnChannels",
			rule: "Channel: l.channels.next(l.out, now), ", without: "",
		},
		{
			name: "later takes do not count against a late decision", file: "estimate.go", found: "TestBelievedCountsWhatWasBefore",
			rule: "slices.Contains(b.actors, last)", without: "slices.Contains(b.actors[:0], last)",
		},
		{
			name: "a late denial at the arrival counts the requests before it", file: "arrival.go", found: "TestLacks",
			rule: "there-waiting < need", without: "there < need",
		},
		{
			name: "a request that is decided in time waits for it", file: "arrival.go", found: "TestLacks",
			rule: "if l.pace.RoundTrip() < r.patience(now) {", without: "if l.pace.RoundTrip() < 0 {",
		},
	}), in("lane", []mutant{
		{
			name: "a denial tells what is left", file: "share.go", found: "TestADenialTellsWhatIsLeft",
			rule: "min(sp.Left.Tokens, left, max(sp.Need, sp.Ask)-1)", without: "0",
		},
		{
			name: "a denied request is told of less than it asks for", file: "share.go", found: "TestADenialTellsWhatIsLeft",
			rule: "min(sp.Left.Tokens, left, max(sp.Need, sp.Ask)-1)", without: "min(sp.Left.Tokens, left)",
		},
		{
			name: "a request that does not fit asks for nothing", file: "share.go", found: "TestAskingForMoreThanThereIs",
			rule: "p.asked+r.Wants(p.limit) > p.there {", without: "p.asked < 0 {",
		},
		{
			name: "a request beyond what is there is denied at once", file: "share.go", found: "TestAShareIsTheLanesPart",
			rule: "beyond || dry || p.asked+n > p.there", without: "beyond || dry",
		},
		{
			name: "the first request has enough", file: "share.go", found: "TestTheFirstRequestHasEnough",
			rule: "p.taken+n > p.most && (s.some || dry)", without: "p.taken+n > p.most",
		},
		{
			name: "the refill of a round trip belongs to the others", file: "share.go", found: "TestShareLeavesMargin",
			rule: "there-p.refill(s.trip)-(replicas-1)", without: "there-(replicas-1)",
		},
	}), in("lane", []mutant{
		{
			name: "many replicas write more slowly", file: "pacing_pace.go", found: "TestPaceOfTenReplicas",
			rule: "max(Least, each, p.RoundTrip()/2)", without: "max(Least, p.RoundTrip()/2)",
		},
		{
			name: "a slow table is sent two writes at a time", file: "pacing_pace.go", found: "TestPaceOfASlowTable",
			rule: "max(Least, each, p.RoundTrip()/2)", without: "max(Least, each)",
		},
		{
			name: "a slow table has longer for a reply", file: "pacing_pace.go", found: "TestPaceOfASlowTable",
			rule: "return max(least, tripAttempts*p.trip)", without: "return least",
		},
		{
			name: "the first state tells of no other replica", file: "pacing_peers.go", found: "TestPeersAreThoseWhoseIdsChange",
			rule: "seen.last = id //", without: "seen = peer{last: id, at: now} //",
		},
	}))
}
