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
				rule: "\t\tother = keeps(found, of, now)\n", without: "\t\tother = keeps(found, of, now)\n\t\tother.Tokens = max(other.Tokens, 0)\n",
			},
			{
				name: "an adjustment raises the epoch", file: "adjusted.go", found: "TestAdjustmentsAreApplied",
				rule: "\tafter.Shard.Epoch++\n", without: "",
			},
			{
				name: "a ttl after an adjustment counts from the debt floor", file: "adjusted.go", found: "TestAnAdjustedItemIsKept",
				rule: "if least.Cmp(of.FullAt) > 0 {", without: "if least.Cmp(of.FullAt) > 0 && w.now < 0 {",
			},
			{
				name: "tokens that come back raise the epoch", file: "write.go", found: "TestTokensThatComeBackRaiseTheEpoch",
				rule: "return one != other || returned(was, is)", without: "return one != other",
			},
			{
				name: "a living shard is not replaced", file: "shard.go", found: "TestAShardIsMadeOnce",
				rule: "OR attribute_exists(#1) AND #2<:0", without: "OR attribute_not_exists(#1) OR #2<:0",
			},
		}),
		in("lane", []mutant{
			{
				name: "of several reports on one state one counts", file: "usage_ledger.go", found: "TestEachMillitokenIsCountedOnce",
				rule: "\t\tlanded.book()\n", without: "\t\tif landed.book(); lost != nil {\n\t\t\tlost.book()\n\t\t}\n",
			},
		}),
		in("lane", []mutant{
			{
				name: "the centre's part of a large request goes back", file: "lease_keep.go", found: "TestTheCentresPartGoesBack",
				rule: "\t\tl.owe(r, back)\n", without: "\t\t_ = back\n",
			},
			{
				name: "a give-back goes to one place", file: "lease_serve.go", found: "TestAGiveBackGoesToOnePlace",
				rule: "\t\t\tsp.Give = h.holder.Refund(at, k, sp.Give)\n", without: "\t\t\th.holder.Refund(at, k, sp.Give)\n",
			},
			{
				name: "a late admission is booked after a refusal", file: "ends.go", found: "TestALateAdmissionIsBookedAfterARefusal",
				rule: "\t\tr.Request = r.Force()\n", without: "\t\tl.finish(r, nil)\n\t\treturn false\n",
			},
			{
				name: "the leases of a cascade are alive after the spend", file: "lease_calls.go", found: "TestACascadeNeedsLeasesThatAreAlive",
				rule: "\tif alive {\n\t\treturn true", without: "\tif alive || len(c.requests) > 0 {\n\t\treturn true",
			},
			{
				name: "a lease is alive after its spend", file: "lease_serve.go", found: "TestALeaseThatIsOverServesNothing",
				rule: "\t\tif !h.holder.Alive(l.host.clocks(l.host.cfg.Now())) {\n", without: "\t\tif !h.holder.State().Serves() {\n",
			},
		}),
		in("engine", []mutant{
			{
				name: "each shard of a denied call gets its part back", file: "take.go", found: "TestEachShardGetsItsPartBack",
				rule: "\t\t\t\tc.engine.lanes.GiveBack(a.request)\n", without: "\t\t\t\tc.engine.lanes.GiveBack(a.request)\n\t\t\t\tbreak\n",
			},
		}),
		in("engine", []mutant{
			{
				name: "parts of a charge count its usage once", file: "shard_branch.go", found: "TestPartsOfAChargeAreTheWhole",
				rule: "\t\t\tsp.Usage = sp.Cost - sp.Give\n", without: "",
			},
		}),
		in("catalog", []mutant{
			{
				name: "a mark that expired is not settled", file: "settlement.go", found: "TestCatalogConforms",
				rule: "if !now.Before(m.Expires) {", without: "if now.IsZero() {",
			},
			{
				name: "changes between two polls are told", file: "watch.go", found: "TestTold",
				rule: "\tnext := from + 1\n", without: "\tnext := to\n",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "a charge after a won mark is not repeated", file: "ledger.go", found: "TestUncertainIsNotRepeated",
				rule: "if errors.Is(err, limiter.ErrUncertain) && !won {", without: "if errors.Is(err, limiter.ErrUncertain) {",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "limits that differ in max debt are two", file: "record.go", found: "TestRecordWritesOnce",
				rule: "\t\tif a.At(i) != b.At(i) {\n", without: "\t\tif a.At(i).Name != b.At(i).Name {\n",
			},
		}),
		in("pkg/embedded", []mutant{
			{
				name: "a block of a limit with carried use is subtracted", file: "bucketrecord.go", found: "TestUseOutlivesACrash",
				rule: "\tif carries {\n\t\tt.Carried =", without: "\tif carries && size < 0 {\n\t\tt.Carried =",
			},
			{
				name: "a commit of unknown outcome covers by both states", file: "block.go", found: "TestACommitThatFails",
				rule: "left := min(s.size-s.spent, s.nextSize-s.nextSpent)\n\t\ts.size = min(s.size, s.nextSize)", without: "left := s.nextSize - s.nextSpent\n\t\ts.size = s.nextSize",
			},
		}),
		in("pkg/tokenbucket", []mutant{
			{
				name: "a full balance has no remainder at a take", file: "tokenbucket.go", found: "TestOperations",
				rule: "\tif amount > 0 && b.Tokens >= p.Capacity {\n", without: "\tif amount > 0 && b.Tokens > p.Capacity {\n",
			},
			{
				name: "a raise does not add carried use", file: "tokenbucket.go", found: "TestReparameterize",
				rule: "\tuse := from.Capacity + b.Carried - b.Tokens\n", without: "\tuse := from.Capacity - b.Tokens\n",
			},
		}),
		in("lease", []mutant{
			{
				name: "a lease is freed after its term", file: "watch.go", found: "TestWatch",
				rule: "mono-s.since >= ReapAfter &&", without: "mono-s.since >= 1000 &&",
			},
		}),
	)
}
