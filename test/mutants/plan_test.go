//go:build mutants

package mutants_test

// planRules are the rules of package plan.
func planRules() []mutant {
	return in("plan", []mutant{
		{
			name: "a busy write has a floor", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "\t\tif f.least == nil || least.Cmp(f.least) > 0 {\n", without: "\t\tif f.least != nil {\n",
		},
		{
			name: "a take has a bound", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "\tif f.most == nil || most.Cmp(f.most) < 0 {\n", without: "\tif f.most != nil {\n",
		},
		{
			name: "a lift goes to its bound", file: "write.go", found: "TestALiftGoesToItsBound",
			rule: "\t\treturn new(big.Int).Add(f.lift, f.offset())\n\tcase f.by != nil", without: "\t\treturn new(big.Int).Add(f.by, new(big.Int).Sub(f.lift, f.lift))\n\tcase f.by != nil",
		},
		{
			name: "a lift has a bound", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "f.lifted, f.lift, f.least, f.most = true, lift, nil, lift", without: "f.lifted, f.lift, f.least, f.most = true, lift, nil, nil",
		},
		{
			name: "each write pins the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "\te.Require(schema.AttrEpoch, \"=\", schema.NumberAttribute(w.base.Shard.Epoch))\n", without: "",
		},
		{
			name: "an exact write pins the serial number", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "\te.Require(schema.AttrSerial, \"=\", schema.NumberAttribute(w.base.Serial))\n", without: "",
		},
		{
			name: "a charge pins the last one of its slot", file: "write.go", found: "TestACopyOfAChargeBehindAnotherIsRefused",
			rule: "\t\te.Require(schema.BookedAttr(w.Slot), \"=\", &types.AttributeValueMemberB{Value: []byte(seen)})\n", without: "",
		},
		{
			name: "the first charge of a slot is the first one", file: "write.go", found: "TestCopiesOfChargesAreRefused",
			rule: "\t\te.RequireAbsent(schema.BookedAttr(w.Slot))\n", without: "",
		},
		{
			name: "a copy of a take is refused by its id", file: "write.go", found: "TestCopiesOfChargesAreRefused",
			rule: "\t\te.Require(attr, \"<>\", id)\n", without: "",
		},
		{
			name: "another line raises the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "was.Line.Rate != is.Line.Rate || was.Line.Offset != is.Line.Offset || ", without: "",
		},
		{
			name: "less room raises the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: " || is.Line.Room < was.Line.Room {", without: " {",
		},
		{
			name: "other limits raise the epoch", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "was.Version.Hash != is.Version.Hash || ", without: "",
		},
		{
			name: "the generation of the limits does not fall", file: "write.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "\t\te.Require(schema.AttrGeneration, \"<=\", schema.NumberAttribute(g))\n", without: "",
		},
		{
			name: "a change of the rate counts from now on", file: "lease.go", found: "TestGivenRateIsGoneFromThePlan",
			rule: "\tb.Line.Offset += int64(rate) * now\n", without: "",
		},
		{
			name: "a dead lease counts as spent", file: "lease.go", found: "TestAReapCountsAsSpent",
			rule: "\tn.v = v.Sub(v, roomOf(st.Balance, parts))", without: "\tif n.v = v; parts > 0 {\n\t\tn.v = v.Sub(v, roomOf(st.Balance, parts))\n\t}",
		},
		{
			name: "the room of a lease leaves the centre without its tokens", file: "lease.go", found: "TestAReapCountsAsSpent",
			rule: "\tn.v = v.Sub(v, roomOf(st.Balance, parts))", without: "\tn.v = v",
		},
		{
			name: "only the lease that was seen is freed", file: "lease.go", found: "TestLeasesThatDoNotFitAreRefused",
			rule: " || held != nil && *held != *q.Seen", without: "",
		},
		{
			name: "limits change when nothing is leased", file: "change.go", found: "TestLimitsWaitForLeases",
			rule: "\tcase s.next.Leased():", without: "\tcase s.next.Leased() && s.now < 0:",
		},
		{
			name: "a shard with leases is neither split nor merged", file: "shard.go", found: "TestShardsWithLeasesStay",
			rule: " && !b.Leased()\n", without: "\n",
		},
		{
			name: "only the retired shard that was seen is merged", file: "absorb.go", found: "TestAShardIsAbsorbedOnce",
			rule: "found.Shard.Birth != other.Birth || ", without: "",
		},
		{
			name: "a merge is not before the retirement", file: "absorb.go", found: "TestNoPlanIsBeforeTheState",
			rule: "now, epoch = max(now, found.Time()), found.Shard.Epoch", without: "epoch = found.Shard.Epoch",
		},
		{
			name: "the other half of a split has the tokens of its split", file: "shard.go", found: "TestHalvesAreTheWhole",
			rule: "half := tokenbucket.Bucket{Tokens: of.Moving,", without: "half := tokenbucket.Bucket{Tokens: made.Shard.Share(of.Whole).Capacity,",
		},
		{
			name: "the other half of a split is made once", file: "shard.go", found: "TestAShardIsMadeOnce",
			rule: " AND #2<:0\"", without: "\"",
		},
		{
			name: "no plan is before the state", file: "stage.go", found: "TestNoPlanIsBeforeTheState",
			rule: "now: max(now, base.Time())", without: "now: now",
		},
		{
			name: "no split is before the state", file: "shard.go", found: "TestNoPlanIsBeforeTheState",
			rule: "\tnow = max(now, b.Time())\n\tafter := *b\n\tstays", without: "\tafter := *b\n\tstays",
		},
		{
			name: "a charge beside a denied take is an exact write", file: "form.go", found: "TestVerdicts",
			rule: "\tif !r.Admitted && r.Books() {\n\t\treturn false\n\t}\n", without: "",
		},
		{
			name: "a lift with carried use is an exact write", file: "form.go", found: "TestChangesOfLimitsAreThoseOfTheReference",
			rule: "\tif st.seen.carried > 0 {\n\t\treturn false\n\t}\n", without: "",
		},
		{
			name: "a leased item is kept until it is full from nothing", file: "ttl.go", found: "TestTTLOfWhatIsNotAlone",
			rule: "\t\tif after.Leased() { //", without: "\t\tif after.Leased() && false { //",
		},
		{
			name: "an item of several has no ttl", file: "ttl.go", found: "TestTTLOfWhatIsNotAlone",
			rule: "if after.Shard.Sharded() {", without: "if after.Shard.Retired {",
		},
		{
			name: "a ttl covers the debt that others may add", file: "ttl.go", found: "TestAnItemIsKeptUntilItIsFull",
			rule: "\tcase f.debt:\n\t\treturn b.Floor\n", without: "",
		},
		{
			name: "a ttl covers the takes that others may add", file: "ttl.go", found: "TestAnItemIsKeptUntilItIsFull",
			rule: "\t\tif !s.exact {\n\t\t\tleft.Tokens = min(left.Tokens, s.lowest(b))\n\t\t}\n", without: "",
		},
		{
			name: "no write lowers a ttl", file: "write.go", found: "TestATTLIsNotLowered",
			rule: "\t\te.RaiseTo(schema.AttrTTL, w.after.TTL)", without: "\t\te.Set(schema.AttrTTL, schema.NumberAttribute(w.after.TTL))",
		},
		{
			name: "an item is kept while forgotten limits last", file: "ttl.go", found: "TestTTLOfWhatIsNotAlone",
			rule: "\tif after.Lasts(s.now) {", without: "\tif after.Lasts(s.now) && s.now < 0 {",
		},
		{
			name: "tokens that move are refilled under the old limits", file: "limits.go", found: "TestLimitsChangeWhileAShardIsMade",
			rule: "\t\tnext.MovedAt = now\n", without: "\t\tnext.MovedAt = b.MovedAt\n",
		},
		{
			name: "a retired shard decides nothing", file: "stage.go", found: "TestShardsWithLeasesStay",
			rule: "\tcase s.base.Shard.Retired:\n\t\treturn Elsewhere\n", without: "",
		},
		{
			name: "a refund beyond a lift is an exact write", file: "form.go", found: "TestVerdicts",
			rule: "\treturn !f.lifted || f.by.Sign() >= 0", without: "\treturn true",
		},
		{
			name: "a charge keeps to the debt floor", file: "form.go", found: "TestWritesThatDoNotFitAreRefused",
			rule: "\tif !f.bound(st, bound) {\n\t\treturn false\n\t}\n", without: "\t_ = bound\n",
		},
		{
			name: "a take is told what others left", file: "outcome.go", found: "TestATakeIsToldWhatOthersLeft",
			rule: "if v.Add(v, r.leaves).Cmp(r.v) == 0 {", without: "if v.Add(v, r.leaves) != nil {",
		},
		{
			name: "a take leaves its id in its channel", file: "write.go", found: "TestTakesOfOneReplicaLandOnce",
			rule: "schema.SlotAttr(w.Slot, w.Channel)", without: "schema.SlotAttr(w.Slot, 0)",
		},
		{
			name: "the id in its channel tells of a take", file: "outcome.go", found: "TestTakesOfOneReplicaLandOnce",
			rule: "image.Slots[w.Slot][w.Channel]", without: "image.Slots[w.Slot][0]",
		},
		{
			name: "an id that is gone tells nothing", file: "outcome.go", found: "TestOutcomes",
			rule: "\tcase own == seen && own != \"\": ", without: "\tcase own == seen: ",
		},
		{
			name: "no item is created at a doubtful time", file: "stage.go", found: "TestNoItemIsCreatedAtADoubtfulTime",
			rule: "\tcase !s.base.Exists() && s.options.Doubtful:\n\t\treturn Waits\n", without: "",
		},
	})
}
