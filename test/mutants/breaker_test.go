//go:build mutants

package mutants_test

import "slices"

// breakerRules are the rules on outages.
func breakerRules() []mutant {
	return slices.Concat(in("awsdb", []mutant{
		{
			name: "a silence begins an outage", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
		},
		{
			name: "a silence begins one outage", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			lines: 3,
		},
		{
			name: "an outage is since the first call that waits", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			without: "if !b.open && (b.failures == 0) {",
		},
		{
			name: "an outage of writes leaves the reads, and no read ends it", file: "breaker.go", found: "TestThrottledWritesAreAnOutageBesideReads",
			without: "case false:",
		},
		{
			name: "writes that are all refused are an outage beside reads", file: "breaker.go", found: "TestThrottledWritesAreAnOutageBesideReads",
			without: "writes := false",
		},
		{
			name: "an outage of writes is since the first of them", file: "breaker.go", found: "TestThrottledWritesAreAnOutageBesideReads",
			without: "if false {",
		},
		{
			name: "failures in a row are an outage", file: "breaker.go", found: "TestBreakerOpensAndCloses",
		},
		{
			name: "answers that are late are an outage after a second", file: "breaker.go", found: "TestBreakerWaitsForLateAnswers",
			without: "return b.failures >= outageFailures",
		},
		{
			name: "a late answer is no proof that a call failed", file: "breaker.go", found: "TestBreakerWaitsForLateAnswers",
			without: "if v == late || v == down || v == rejected {",
		},
		{
			name: "a call of a machine that stood still says nothing", file: "breaker.go", found: "TestBreakerWaitsForLateAnswers",
			without: "case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && ended.Sub(began) < hastyCall:",
		},
		{
			name: "the first answer ends an outage", file: "breaker.go", found: "TestTheFirstAnswerEndsTheOutage",
		},
		{
			name: "an outage of a part leaves the calls for the others", file: "guard.go", found: "TestAnOutageOfAPart",
			without: "if part, one := g.cfg.Part(in); one && part < 0 {",
		},
	}), in("lane", []mutant{
		{
			name: "a silence does not count a standstill", file: "health.go", found: "TestAStandstillIsNoSilence",
		},
		{
			name: "messages above the bound wait", file: "crowding.go", found: "TestLanesWaitForTurns",
			without: "if true {",
		},
		{
			name: "most turns go to the lane that came last", file: "crowding.go", found: "TestLanesWaitForTurns",
			without: "of, place := &c.others, c.others.Front()",
		},
		{
			name: "each lane has a turn in the end", file: "crowding.go", found: "TestLanesWaitForTurns",
			without: "if oldest := c.others.Front(); oldest != nil && false {",
		},
		{
			name: "a lane with a lease comes before others", file: "crowding.go", found: "TestLanesWaitForTurns",
			without: "if first := c.leased.Front(); first != nil && c.others.Len() == 0 {",
		},
		{
			name: "no lane waits for the turn of a server that does not answer", file: "step.go", found: "TestNoLaneWaitsForASilentServer",
			without: "} else if false {",
		},
		{
			name: "long round trips at a time narrow the bound once", file: "crowding.go", found: "TestBoundFollowsRoundTrips",
			without: "if true {",
		},
		{
			name: "the bound grows where lanes wait", file: "crowding.go", found: "TestBoundFollowsRoundTrips",
			without: "case answered:",
		},
		{
			name: "an owed request waits for a turn", file: "ends.go", found: "TestOwedRequestsWaitForATurn",
			without: "return now.After(r.expires) && (!patient || r.state != over)",
		},
		{
			name: "a part of the server that does not answer holds up no messages to the others", file: "host.go", found: "TestPartsHaveTurnsOfTheirOwn",
			without: "return s.crowds[min(part, 0)]",
		},
	}))
}
