//go:build mutants

package mutants_test

// laneRules are the rules of package lane on the ends of requests and messages. Tests of the
// engine find those that need several messages in an order that is rare.
func laneRules() []mutant {
	return in("lane", []mutant{
		{
			name: "a lease ends by the wall clock of the machine", file: "host.go", found: "TestClocksOfALease",
			rule: "Wall: now.Round(0).UnixMilli()", without: "Wall: now.Sub(s.began).Milliseconds()",
		},
		{
			name: "a jump of the clock is another era", file: "host.go", found: "TestClocksOfALease",
			rule: "s.cfg.Clock.Era() + s.self.renamed.Load()", without: "s.self.renamed.Load()",
		},
		{
			name: "another number of the process is another era", file: "host.go", found: "TestClocksOfALease",
			rule: "s.cfg.Clock.Era() + s.self.renamed.Load()", without: "s.cfg.Clock.Era()",
		},
		{
			name: "a lease of a copy is not the own one", file: "lease_state.go", found: "TestALeaseOfACopyIsNotTheOwn",
			rule: "!slices.Contains(h.issued[:min(h.writes, len(h.issued))], own.Sequence)", without: "h.writes < 0",
		},
		{
			name: "a take in doubt that is made again is counted as lost", file: "ends.go", found: "TestTakesInDoubtAreCounted",
			rule: "takes := open && r.Takes()", without: "takes := open && !r.state.owes() && r.Takes()",
		},
		{
			name: "calls over several buckets count what leases served", file: "lease_calls.go", tested: "engine", found: "TestWhatLeasesServeIsCounted",
			rule: "\t\t\tl.held.ledger.Draw(c.draws[i])\n", without: "",
		},
		{
			name: "the part that a lease kept counts", file: "lease_keep.go", tested: "engine", found: "TestWhatLeasesServeIsCounted",
			rule: "\tif r.Admitted && !lost {\n\t\tl.consume(r, kept)\n\t}\n", without: "",
		},
		{
			name: "a request waits for no lease write that is not sent", file: "lease_serve.go", found: "TestNoRequestWaitsForARestingLease",
			rule: "return !l.rests(now), false", without: "return true, false",
		},
		{
			name: "an outage is a second without a reply", file: "health.go", found: "TestSilenceIsASecondWithoutAReply",
			rule: "return !h.since.IsZero() && now.Sub(h.since) >= silence\n", without: "return !h.since.IsZero() && now.Sub(h.since) >= silence/2\n",
		},
		{
			name: "a late denial gives back what its write takes", file: "deadline.go", tested: "engine", found: "TestALateCascadeIsAllOrNothing",
			rule: "\t\te := deniedLate\n", without: "\t\te := admittedLate\n",
		},
		{
			name: "a copy that is refused does not tell that no copy landed", file: "write.go", tested: "engine", found: "TestAChargeIsBookedOnce",
			rule: "refused && (m.outcome == unknown || m.shown(image))", without: "refused && m.shown(image)",
		},
		{
			name: "a refusal by the own id is no refusal", file: "write.go", tested: "engine", found: "TestARefusedCopyOfATakeOfACallerWhoLeft",
			rule: "refused && (m.outcome == unknown || m.shown(image))", without: "refused && m.outcome == unknown",
		},
		{
			name: "a charge in doubt is not booked again", file: "write.go", tested: "engine", found: "TestAChargeIsBookedOnce",
			rule: "\t\tl.closer.dropBookings(&m.batch, now)\n", without: "\t\tl.closer.again(&m.batch, true)\n",
		},
		{
			name: "a write that was refused is watched for copies", file: "saw.go", tested: "engine", found: "TestACopyThatIsAppliedAfterARefusal",
			rule: "\tl.finder.find(image)\n", without: "",
		},
		{
			name: "a call that leaves gets back what its write takes", file: "request.go", tested: "engine", found: "TestCallersWhoLeave",
			rule: "r.state == sentDenied || r.state == sentLeft && !r.Keep", without: "r.state == sentDenied",
		},
	})
}
