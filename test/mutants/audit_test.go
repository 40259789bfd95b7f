//go:build mutants

package mutants_test

import "slices"

// auditRules are the rules that the audit of commit 81929f6 took away, in the order of its table within
// each package.
func auditRules() []mutant {
	return slices.Concat(
		in("plan", []mutant{
			{
				name: "debt of a shard that is absorbed stays", file: "absorb.go", found: "TestDebtIsMerged",
				without: "other = keeps(found, of, now)\nother.Tokens = max(other.Tokens, 0)",
			},
			{
				name: "an adjustment raises the epoch", file: "adjusted.go", found: "TestAdjustmentsAreApplied",
			},
			{
				name: "a ttl after an adjustment counts from the debt floor", file: "adjusted.go", found: "TestAnAdjustedItemIsKept",
				without: "if least.Cmp(of.FullAt) > 0 && w.now < 0 {",
			},
			{
				name: "tokens that come back raise the epoch", file: "write.go", found: "TestTokensThatComeBackRaiseTheEpoch",
				without: "return one != other",
			},
			{
				name: "a living shard is not replaced", file: "shard.go", found: "TestAShardIsMadeOnce",
				lines: 2, without: "to.RequireAbsent(schema.AttrRetired)",
			},
		}),
		in("lane", []mutant{
			{
				name: "of several reports on one state one counts", file: "usage_ledger.go", found: "TestEachMillitokenIsCountedOnce",
				without: "if landed.book(); lost != nil {\n\tlost.book()\n}",
			},
		}),
		in("lane", []mutant{
			{
				name: "the centre's part of a large request goes back", file: "lease_keep.go", found: "TestTheCentresPartGoesBack",
				without: "_ = back",
			},
			{
				name: "a give-back goes to one place", file: "lease_serve.go", found: "TestAGiveBackGoesToOnePlace",
				without: "h.holder.Refund(at, k, sp.Give)",
			},
			{
				name: "a late admission is booked after a refusal", file: "ends.go", found: "TestALateAdmissionIsBookedAfterARefusal",
				without: "l.finish(r, nil)\nreturn false",
			},
			{
				name: "the leases of a cascade are alive after the spend", file: "lease_calls.go", found: "TestACascadeNeedsLeasesThatAreAlive",
				without: "if alive || len(c.requests) > 0 {",
			},
			{
				name: "a lease is alive after its spend", file: "lease_serve.go", found: "TestALeaseThatIsOverServesNothing",
				without: "if !h.holder.State().Serves() {",
			},
		}),
		in("engine", []mutant{
			{
				name: "each shard of a denied call gets its part back", file: "take.go", found: "TestEachShardGetsItsPartBack",
				without: "c.engine.lanes.GiveBack(a.request)\nbreak",
			},
		}),
		in("engine", []mutant{
			{
				name: "parts of a charge count its usage once", file: "shard_branch.go", found: "TestPartsOfAChargeAreTheWhole",
			},
		}),
		in("catalog", []mutant{
			{
				name: "a mark that expired is not settled", file: "settlement.go", found: "TestCatalogConforms",
				without: "if now.IsZero() {",
			},
			{
				name: "changes between two polls are told", file: "watch.go", found: "TestTold",
				without: "next := to",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "a charge after a won mark is not repeated", file: "ledger.go", found: "TestUncertainIsNotRepeated",
				without: "if errors.Is(err, limiter.ErrUncertain) {",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "limits that differ in max debt are two", file: "record.go", found: "TestRecordWritesOnce",
				without: "if a.At(i).Name != b.At(i).Name {",
			},
		}),
		in("pkg/embedded", []mutant{
			{
				name: "a block of a limit with carried use is subtracted", file: "bucketrecord.go", found: "TestUseOutlivesACrash",
				without: "if carries && size < 0 {",
			},
			{
				name: "a commit of unknown outcome covers by both states", file: "block.go", found: "TestACommitThatFails",
				lines: 2, without: "left := s.nextSize - s.nextSpent\ns.size = s.nextSize",
			},
		}),
		in("pkg/tokenbucket", []mutant{
			{
				name: "a full balance has no remainder at a take", file: "tokenbucket.go", found: "TestOperations",
				without: "if amount > 0 && b.Tokens > p.Capacity {",
			},
			{
				name: "a raise does not add carried use", file: "tokenbucket.go", found: "TestReparameterize",
				without: "use := from.Capacity - b.Tokens",
			},
			{
				name: "use that no refill makes up for counts in full", file: "tokenbucket.go", found: "TestReparameterize", without: "",
			},
		}),
		in("lease", []mutant{
			{
				name: "a lease is freed after its term", file: "watch.go", found: "TestWatch",
				without: "if mono-s.since >= 1000 && (!ok || id < replica) {",
			},
		}),
	)
}
