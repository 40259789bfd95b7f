//go:build mutants

package mutants_test

// planRules are the rules of package plan.
func planRules() []mutant {
	return in("plan", []mutant{
		{
			name: "a busy write has a floor", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			without: "if f.least.there {",
		},
		{
			name: "a take has a bound", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			without: "if f.most.there {",
		},
		{
			name: "a lift goes to its bound", file: "write.go", found: "TestALiftGoesToItsBound",
			without: "return f.by",
		},
		{
			name: "a lift has a bound", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			without: "f.lifted, f.lift, f.least, f.most = true, lift, edge{}, edge{}",
		},
		{
			name: "each write pins the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
		},
		{
			name: "an exact write pins the serial number", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
		},
		{
			name: "a charge pins the last one of its slot", file: "write.go", found: "TestACopyOfAChargeBehindAnotherIsRefused",
		},
		{
			name: "the first charge of a slot is the first one", file: "write.go", found: "TestCopiesOfChargesAreRefused",
		},
		{
			name: "a copy of a take is refused by its id", file: "write.go", found: "TestCopiesOfChargesAreRefused",
		},
		{
			name: "another line raises the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			without: "if was.Version.Hash != is.Version.Hash || is.Line.Room < was.Line.Room {",
		},
		{
			name: "less room raises the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "another line raises the epoch", without: "if was.Version.Hash != is.Version.Hash || was.Line.Rate != is.Line.Rate || was.Line.Offset != is.Line.Offset {",
		},
		{
			name: "other limits raise the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "another line raises the epoch", without: "if was.Line.Rate != is.Line.Rate || was.Line.Offset != is.Line.Offset || is.Line.Room < was.Line.Room {",
		},
		{
			name: "the generation of the limits does not fall", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
		},
		{
			name: "a change of the rate counts from now on", file: "lease.go", found: "TestGivenRateIsGoneFromThePlan",
		},
		{
			name: "a dead lease counts as spent", file: "lease.go", found: "TestAReapCountsAsSpent",
			without: "if n.v = n.v.Add(m.units(millitokens)); parts > 0 {\n\tn.v = n.v.Sub(roomOf(st.Balance, parts))\n}",
		},
		{
			name: "the room of a lease leaves the centre without its tokens", file: "lease.go", found: "TestAReapCountsAsSpent",
			rule: "a dead lease counts as spent", without: "n.v = n.v.Add(m.units(millitokens))",
		},
		{
			name: "only the lease that was seen is freed", file: "lease.go", found: "TestLeasesThatDoNotFitAreRefused",
			without: "if (held == nil) != (q.Seen == nil) {",
		},
		{
			name: "limits change when nothing is leased", file: "change.go", found: "TestLimitsWaitForLeases",
			without: "case s.next.Leased() && s.now < 0:",
		},
		{
			name: "a shard with leases is neither split nor merged", file: "shard.go", found: "TestShardsWithLeasesStay",
			without: "return b.Exists() && !b.Shard.Moving && !b.Shard.Retired",
		},
		{
			name: "only the retired shard that was seen is merged", file: "absorb.go", found: "TestAShardIsAbsorbedOnce",
			without: "if !found.Shard.Retired || found.Shard.Index != other.Index || found.Version.Newer(b.Version) {",
		},
		{
			name: "a merge is not before the retirement", file: "absorb.go", found: "TestNoPlanIsBeforeTheState",
			without: "epoch = found.Shard.Epoch",
		},
		{
			name: "the other half of a split has the tokens of its split", file: "shard.go", found: "TestHalvesAreTheWhole",
			without: "half := tokenbucket.Bucket{Tokens: made.Shard.Share(of.Whole).Capacity, Carried: of.Aside, Refilled: b.MovedAt}",
		},
		{
			name: "the other half of a split is made once", file: "shard.go", found: "TestAShardIsMadeOnce",
			rule: "a living shard is not replaced", lines: 2, without: "to.RequirePresent(schema.AttrRetired)",
		},
		{
			name: "no plan is before the state", file: "stage.go", found: "TestNoPlanIsBeforeTheState",
			without: "s := &Stage{base: base, next: base, now: now, options: o, exact: !base.Exists()}",
		},
		{
			name: "no split is before the state", file: "shard.go", found: "TestNoPlanIsBeforeTheState",
		},
		{
			name: "a charge beside a denied take is an exact write", file: "form.go", found: "TestVerdicts",
			lines: 3,
		},
		{
			name: "a lift with carried use is an exact write", file: "form.go", found: "TestChangesOfLimitsAreThoseOfTheReference",
			lines: 3,
		},
		{
			name: "a leased item is kept until it is full from nothing", file: "ttl.go", found: "TestTTLOfWhatIsNotAlone",
			without: "if after.Leased() && false { // a holder that is gone may have spent all that it held",
		},
		{
			name: "the item of a window is kept until that is over", file: "ttl.go", found: "TestTheItemsOfAWindow",
			lines: 3,
		},
		{
			name: "an item of several has no ttl", file: "ttl.go", found: "TestTTLOfWhatIsNotAlone",
			without: "if after.Shard.Retired {",
		},
		{
			name: "a ttl covers the debt that others may add", file: "ttl.go", found: "TestAnItemIsKeptUntilItIsFull",
			lines: 2,
		},
		{
			name: "a ttl covers the takes that others may add", file: "ttl.go", found: "TestAnItemIsKeptUntilItIsFull",
			lines: 3,
		},
		{
			name: "no write lowers a ttl", file: "write.go", found: "TestATTLIsNotLowered",
			without: "to.Set(schema.AttrTTL, schema.NumberAttribute(w.after.TTL))",
		},
		{
			name: "an item is kept while forgotten limits last", file: "ttl.go", found: "TestTTLOfWhatIsNotAlone",
			without: "if after.Lasts(s.now) && s.now < 0 {",
		},
		{
			name: "tokens that move are refilled under the old limits", file: "limits.go", found: "TestLimitsChangeWhileAShardIsMade",
			without: "next.MovedAt = b.MovedAt",
		},
		{
			name: "a retired shard decides nothing", file: "stage.go", found: "TestShardsWithLeasesStay",
			lines: 2,
		},
		{
			name: "a refund beyond a lift is an exact write", file: "form.go", found: "TestVerdicts",
			without: "return true",
		},
		{
			name: "a charge keeps to the debt floor", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			lines: 3, without: "_ = bound",
		},
		{
			name: "a take is told what others left", file: "outcome.go", found: "TestATakeIsToldWhatOthersLeft",
			without: "if k >= 0 {",
		},
		{
			name: "a take leaves its id in its channel", file: "write.go", found: "TestTakesOfOneReplicaLandOnce",
			without: "attr := schema.SlotAttr(w.Slot, 0)",
		},
		{
			name: "the id in its channel tells of a take", file: "outcome.go", found: "TestTakesOfOneReplicaLandOnce",
			without: "own, seen := image.Slots[w.Slot][0], w.base.Slots[w.Slot][w.Channel]",
		},
		{
			name: "an id that is gone tells nothing", file: "outcome.go", found: "TestOutcomes",
			without: "case own == seen: // an absent id of a take may have been dropped",
		},
		{
			name: "no item is created at a doubtful time", file: "stage.go", found: "TestNoItemIsCreatedAtADoubtfulTime",
			lines: 2,
		},
	})
}
