//go:build mutants

package mutants_test

// breakerRules are the rules of package awsdb on outages.
func breakerRules() []mutant {
	return in("awsdb", []mutant{
		{
			name: "a silence begins an outage", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			rule: "\tb.failures = outageFailures\n", without: "",
		},
		{
			name: "a silence begins one outage", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			rule: "\tif b.open {\n\t\treturn false\n\t}\n", without: "",
		},
		{
			name: "an outage is since the first call that waits", file: "breaker.go", found: "TestSilenceOpensTheBreaker",
			rule: "b.failures == 0 || since.Before(b.failing)", without: "b.failures == 0",
		},
		{
			name: "failures in a row are an outage", file: "breaker.go", found: "TestBreakerOpensAndCloses",
			rule: "\t\tb.failures = 0\n\t\tb.answered(now)", without: "\t\tb.answered(now)",
		},
	})
}
