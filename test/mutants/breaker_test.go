//go:build mutants

package mutants_test

import "slices"

// breakerRules are the rules on outages.
func breakerRules() []mutant {
	return slices.Concat(in("awsdb", []mutant{
		{
			name: "a silence begins an outage", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			rule: "\tb.begin(now, late, cause, r)\n", without: "",
		},
		{
			name: "a silence begins one outage", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			rule: "\tif b.open && !b.answers {\n\t\treturn false\n\t}\n", without: "",
		},
		{
			name: "an outage is since the first call that waits", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			rule: "b.failures == 0 || since.Before(b.failing)", without: "b.failures == 0",
		},
		{
			name: "failures in a row are an outage", file: "breaker.go", found: "TestBreakerOpensAndCloses",
			rule: "\tb.failures, b.certain = 0, 0\n\tb.limit++", without: "\tb.limit++",
		},
		{
			name: "answers that are late are an outage after a second", file: "breaker.go", found: "TestBreakerWaitsForLateAnswers",
			rule: "return b.failures >= outageFailures && lasts >= Silence", without: "return b.failures >= outageFailures",
		},
		{
			name: "a late answer is no proof that a call failed", file: "breaker.go", found: "TestBreakerWaitsForLateAnswers",
			rule: "if v == down || v == rejected {", without: "if v == late || v == down || v == rejected {",
		},
		{
			name: "a call of a machine that stood still says nothing", file: "breaker.go", found: "TestBreakerWaitsForLateAnswers",
			rule: ", stoodStill(ctx, began, ended):", without: ":",
		},
		{
			name: "the first answer ends an outage", file: "breaker.go", found: "TestTheFirstAnswerEndsTheOutage",
			rule: "\tb.answers = true\n", without: "",
		},
	}), in("lane", []mutant{
		{
			name: "a silence does not count a standstill", file: "health.go", found: "TestAStandstillIsNoSilence",
			rule: "\t\th.since = h.since.Add(passed)\n", without: "",
		},
	}))
}
