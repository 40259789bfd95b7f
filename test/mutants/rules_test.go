//go:build mutants

package mutants_test

// laneRules are the rules of package lane on the ends of requests and messages. Tests of the
// engine find those that need several messages in an order that is rare.
func laneRules() []mutant {
	return in("lane", []mutant{
		{
			name: "a lease ends by the wall clock of the machine", file: "host.go", found: "TestClocksOfALease",
			without: "Mono: now.Sub(s.began).Milliseconds(), Wall: now.Sub(s.began).Milliseconds(), Era: s.cfg.Clock.Era() + s.self.renamed.Load(),",
		},
		{
			name: "a jump of the clock is another era", file: "host.go", found: "TestClocksOfALease",
			rule: "a lease ends by the wall clock of the machine", without: "Mono: now.Sub(s.began).Milliseconds(), Wall: now.Round(0).UnixMilli(), Era: s.self.renamed.Load(),",
		},
		{
			name: "time that the lane's clock counted is not counted again", file: "view.go", found: "TestNoReturnIsInTheFuture",
			without: "v.advance(v.now + now.Sub(v.moved).Milliseconds())",
		},
		{
			name: "a turn settles the outcome of a return", file: "lease_write.go", found: "TestATurnSettlesTheLastReturn",
			without: "return nil",
		},
		{
			name: "the last lease write reads for the clock", file: "lease_write.go", found: "TestALeaseIsReturnedAfterASleep",
			without: "blind := false",
		},
		{
			name: "another number of the process is another era", file: "host.go", found: "TestClocksOfALease",
			rule: "a lease ends by the wall clock of the machine", without: "Mono: now.Sub(s.began).Milliseconds(), Wall: now.Round(0).UnixMilli(), Era: s.cfg.Clock.Era(),",
		},
		{
			name: "a lease of a copy is not the own one", file: "lease_state.go", found: "TestALeaseOfACopyIsNotTheOwn",
			without: "return h.writes < 0",
		},
		{
			name: "a late admission is booked after an outage", file: "ends.go", found: "TestALateAdmissionIsBookedAfterAnOutage",
			without: "if l.happen(r, refused); r.state == over {",
		},
		{
			name: "a booked request is not booked again", file: "ends.go", found: "TestABookedRequestIsNotBookedAfterAnOutage",
			lines: 4, without: "return false",
		},
		{
			name: "a take in doubt that is made again is counted as lost", file: "ends.go", found: "TestTakesInDoubtAreCounted",
			without: "takes := open && !r.state.owes() && r.Takes()",
		},
		{
			name: "calls over several buckets count what leases served", file: "lease_calls.go", tested: "engine", found: "TestWhatLeasesServeIsCounted",
		},
		{
			name: "the part that a lease kept counts", file: "lease_keep.go", tested: "engine", found: "TestWhatLeasesServeIsCounted",
			lines: 3,
		},
		{
			name: "a request waits for no lease write that is not sent", file: "lease_serve.go", found: "TestNoRequestWaitsForARestingLease",
			without: "return true, false",
		},
		{
			name: "a request that waits for a lease is denied by a fresh state", file: "lease_serve.go", found: "TestNoDenialByAnOldStateWhereALeaseIsDue",
			without: "if false {",
		},
		{
			name: "an outage is a second without a reply", file: "health.go", found: "TestSilenceIsASecondWithoutAReply",
			without: "return !h.since.IsZero() && now.Sub(h.since) >= silence/2",
		},
		{
			name: "a late denial gives back what its write takes", file: "deadline.go", tested: "engine", found: "TestALateCascadeIsAllOrNothing",
			without: "e := admittedLate",
		},
		{
			name: "a copy that is refused does not tell that no copy was applied", file: "write.go", tested: "engine", found: "TestAChargeIsBookedOnce",
			without: "case m.outcome == sought, refused && m.shown(image): // a copy can be refused since the write was applied",
		},
		{
			name: "a refusal by the own id is no refusal", file: "write.go", tested: "engine", found: "TestARefusedCopyOfATakeOfACallerWhoLeft",
			rule: "a copy that is refused does not tell that no copy was applied", without: "case m.outcome == sought, refused && m.outcome == unknown: // a copy can be refused since the write was applied",
		},
		{
			name: "a charge in doubt is not booked again", file: "write.go", tested: "engine", found: "TestAChargeIsBookedOnce",
			without: "l.closer.again(&m.batch, true)",
		},
		{
			name: "a write that was refused is watched for copies", file: "image.go", tested: "engine", found: "TestACopyThatIsAppliedAfterARefusal",
		},
		{
			name: "a call that leaves gets back what its write takes", file: "request.go", tested: "engine", found: "TestCallersWhoLeave",
			without: "return r.state == sentDenied",
		},
	})
}
