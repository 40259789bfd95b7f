//go:build mutants

package mutants_test

// unseenRules are the rules of requests for an item that their replica has not seen, or for one at a time that it
// does not know.
func unseenRules() []mutant {
	const misfits = "TestUnseenItemsThatDoNotFit"
	return append(in("lane", []mutant{{
		name: "a request that waited has the time of the newest correction", file: "step.go", found: "TestAnItemIsCreatedAtTheCorrectedTime",
		without: "l.view.advance(r.At)",
	}, {
		name: "the time of a lane has the correction", file: "usage.go", found: "TestUsageIsCountedAtTheTimeOfItsLane",
		without: "Request: rest, Site: &l.site, Index: l.index, At: l.view.now, state: promised,",
	}, {
		name: "nothing is taken while replies may correct the clock", file: "group.go", found: "TestNothingIsWrittenAsOfBeforeASleep",
		without: "if false {",
	}, {
		name: "no limits change while replies may correct the clock", file: "group.go", found: "TestNothingIsWrittenAsOfBeforeASleep",
		without: "if base.Exists() {",
	}}), in("plan", []mutant{
		{
			name: "a take of what is there needs to see that", file: "upsert.go", found: "TestWritesThatNeedToSeeTheItem",
			without: "!slices.ContainsFunc(s.results, func(result) bool { return false })",
		},
		{name: "a take from an unseen item needs its limits", file: "upsert.go", found: misfits},
		{name: "a take from an unseen item needs it whole", file: "upsert.go", found: misfits},
		{name: "a take from an unseen item needs all parts there", file: "upsert.go", found: misfits},
		{
			name: "a take from an unseen item lowers no generation", file: "upsert.go", found: "TestGenerationsOfUnseenItems",
			without: "to.Set(schema.AttrGeneration, schema.NumberAttribute(w.after.Version.Generation))",
		},
		{name: "a take from an unseen item has a bound", file: "upsert.go", found: misfits},
		{name: "a take from an unseen item needs a limit without an extra", file: "upsert.go", found: misfits},
		{name: "a take from an unseen item raises its ttl", file: "upsert.go", found: "TestTakeFromAnUnseenItem"},
		{
			name: "a take from an unseen item counts the refill up to its time", file: "upsert.go", found: "TestTakeFromAnUnseenItem",
			without: "to.AddValue(attr, taken.Attribute())",
		},
		{
			name: "carried use is no part of a balance above a floor", file: "form.go", found: "TestTakesFromUnseenItemsAreThoseOfTheReference",
			without: "if o.Scripts && f.by.Sign() == 0 {",
		},
		{
			name: "a refund is no part of a balance above a floor", file: "form.go", found: "TestTakesFromUnseenItemsAreThoseOfTheReference",
			rule: "carried use is no part of a balance above a floor", without: "if o.Scripts && st.seen.carried == 0 {",
		},
		{
			name: "a take that may be applied yet is open", file: "outcome.go", found: "TestCopiesOfTakesFromUnseenItems",
		},
		{
			name: "a state under other limits corrects nothing", file: "outcome.go", found: "TestATakeFromAnUnseenItemUnderNewLimits",
			without: "if w.stage == nil || w.exact && !w.upsert {",
		},
		{
			name: "a take above a floor counts the refill up to its time", file: "write.go", found: "TestTakesFromUnseenItemsAreThoseOfTheReference", lines: 3,
		},
		{
			name: "a look before a take above a floor counts the same refill", file: "outcome.go", found: "TestALookBeforeATakeAboveAFloor",
			without: "from := r.leaves",
		},
		{
			name: "no exact write comes between a take from an unseen item and its copy", file: "upsert.go", found: "TestCopiesOfTakesFromUnseenItemsBehindALease",
		},
		{
			name: "a reset fills a shard by its own limits", file: "adjust.go", found: "TestResetOfShardsUnderDifferentLimits",
			without: "p.set(parts[0].Whole.Capacity)",
		},
	})...)
}
