//go:build mutants

package mutants_test

import "slices"

// kinRules are guards beside those of the audit.
func kinRules() []mutant {
	return slices.Concat(
		in("lane", []mutant{
			{
				name: "leases that are alive get back what a cascade drew", file: "lease_calls.go", found: "TestACascadeNeedsLeasesThatAreAlive",
				rule: "\t\t\tl.held.holder.Refund(l.view.now, d.Limit, d.Take)\n", without: "\t\t\t_, _ = l, d\n",
			},
			{
				name: "a denied cascade has taken nothing", file: "lease_calls.go", found: "TestADeniedCascadeTakesNothing",
				rule: "\t\t\tr.unspent()\n", without: "",
			},
			{
				name: "one request denied denies the cascade", file: "lease_calls.go", found: "TestADeniedCascadeTakesNothing",
				rule: "\tc.denies = c.denies || c.denied[i]\n", without: "",
			},
			{
				name: "what is kept is free again after a denial", file: "lease_keep.go", found: "TestWhatIsKeptIsFreeAgain",
				rule: "\tif r.part != nil {\n\t\tl.settle(r, false)\n\t}\n", without: "",
			},
			{
				name: "usage that a lease pays counts", file: "lease_serve.go", found: "TestAGiveBackGoesToOnePlace",
				rule: "\t\t\t\th.ledger.Add(k, r.Spends[i].Usage)\n", without: "\t\t\t\t_ = k\n",
			},
			{
				name: "no lease is asked for at the end", file: "lease_write.go", found: "TestNothingNewIsLeased",
				rule: "if l.host.closing.Load() && h.holder != nil {", without: "if l.host.closing.Load() && h.holder == nil {",
			},
			{
				name: "a request with an end is not forwarded", file: "lanes.go", found: "TestARequestOnItsWayHasOneEnd",
				rule: "\t\tif r.state != over {\n", without: "\t\tif r.state != over || r.Wait != nil {\n",
			},
			{
				name: "a request that is abandoned keeps nothing of the lease", file: "leave.go", found: "TestWhatIsKeptIsFreeAgain",
				rule: "\tl.lease.release(r, false)\n\tl.finish(r, errLeft)", without: "\tl.finish(r, errLeft)",
			},
			{
				name: "requests of a shard that is no more keep nothing of its lease", file: "depart.go", found: "TestDepartedRequestsAskForAll",
				rule: "\tfor _, r := range d.requests {\n\t\tl.lease.release(r, false)\n\t}\n", without: "",
			},
			{
				name: "one charge of a lane is under way at a time", file: "group.go", found: "TestOneChargeAtATime",
				rule: "if r.Books() && g.books() {", without: "if r.Books() && g.books() && g.pending {",
			},
			{
				name: "no lease of a retired shard", file: "lease_serve.go", found: "TestNothingNewIsLeased",
				rule: "(v.state == nil || !v.state.Shard.Retired)", without: "(v.state == nil || v.state.Exists())",
			},
		}),
		in("lease", []mutant{
			{
				name: "few lease writes are without an outcome", file: "holder.go", found: "TestFewWritesWithoutAnOutcome",
				rule: "s == Unsettled || len(h.cands) > mostOpen {", without: "s == Unsettled {",
			},
			{
				name: "a failure of an older lease write is none of the newest", file: "life.go", found: "TestAFailureOfAnotherWrite",
				rule: "if !d.state.InFlight() || p.Slot.Seq != l.flight.Slot.Seq {", without: "if !d.state.InFlight() {",
			},
		}),
		in("plan", []mutant{
			{
				name: "carried use of both halves is carried", file: "absorb.go", found: "TestHalvesAreTheWhole",
				rule: "min(x.Carried+y.Carried, tokenbucket.MaxCapacity)", without: "min(x.Carried, tokenbucket.MaxCapacity)",
			},
			{
				name: "an adjustment is not before the item", file: "adjusted.go", found: "TestNoAdjustmentIsBeforeTheItem",
				rule: "\te.Require(schema.AttrAt, \"<=\", schema.NumberAttribute(w.now))\n", without: "",
			},
			{
				name: "only shards that are settled are merged", file: "absorb.go", found: "TestShardsWithLeasesStay",
				rule: "if !settled(b) || !b.Shard.Sharded()", without: "if !b.Shard.Sharded()",
			},
			{
				name: "the slot tells that a return was not applied", file: "outcome.go", found: "TestAReturnTellsItsOutcome",
				rule: "\tcase w.lease.counts() && w.lease.Seen != nil && sameLease(image.Lease(w.lease.Replica), w.lease.Seen): // another replica may have its slot of ids\n\t\treturn Dead\n", without: "",
			},
			{
				name: "a return that counts leaves its id", file: "write.go", found: "TestAReturnTellsItsOutcome",
				rule: " || s.lease.counts()\n", without: "\n",
			},
		}),
		in("engine", []mutant{
			{
				name: "a failed part admits no call", file: "take.go", found: "TestAFailedBucketGivesBackTheOthers",
				rule: "\t\t\tadmitted = admitted && err == nil\n", without: "",
			},
			{
				name: "late parts are the lane's to give back", file: "take.go", found: "TestEachShardGetsItsPartBack",
				rule: "if !a.late && (!a.request.Keep", without: "if (!a.request.Keep",
			},
			{
				name: "a closed engine takes no calls", file: "engine.go", found: "TestCloseWaitsForCalls",
				rule: "\tif e.closed {\n", without: "\tif e.closed && e.cfg.Table == \"\" {\n",
			},
			{
				name: "calls in flight are waited for", file: "engine.go", found: "TestCloseWaitsForCalls",
				rule: "\t\te.calls.Wait()\n", without: "",
			},
		}),
		in("engine", []mutant{
			{
				name: "a shard that denied gave nothing", file: "shard_branch.go", found: "TestABranchCollectsWhatIsThere",
				rule: "\t\t\tcase r.Admitted:\n", without: "\t\t\tcase r.Admitted || sp.Take > 0:\n",
			},
			{
				name: "a charge that no shard holds goes to all", file: "shard_branch.go", found: "TestPartsOfAChargeAreTheWhole",
				rule: "return max(sp.Give, sp.Cost) <= capacity", without: "return sp.Give <= capacity",
			},
			{
				name: "one request of a process takes from several shards", file: "shard_branch.go", found: "TestOneRequestGathers",
				rule: "b.gate = b.gate || b.tree.gathering.CompareAndSwap(false, true)", without: "b.gate = true",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "nothing is queued after the end", file: "ledger_queue.go", found: "TestCloseEndsTries",
				rule: "ok := !q.over && (!q.closed || q.first > 0) &&", without: "ok := (!q.closed || q.first > 0) &&",
			},
			{
				name: "a late try without an answer is queued", file: "ledger_first.go", found: "TestChargeIsKept",
				rule: "\t\tq.late.Add(-1) // before, so that it counts once\n\t\tq.add(again)\n", without: "\t\tq.late.Add(-1) // before, so that it counts once\n",
			},
			{
				name: "a charge of unknown outcome is not queued", file: "ledger.go", found: "TestUncertainOfAMixedRequest",
				rule: "\tif errors.Is(d.Unavailable, limiter.ErrUncertain) {\n\t\tl.queue.uncertain.Add(1)\n\t\treturn\n\t}\n", without: "",
			},
			{
				name: "a late try of unknown outcome is not repeated", file: "ledger_first.go", found: "TestALateTryOfUnknownOutcome",
				rule: "\tcase errors.Is(err, limiter.ErrUncertain):\n\t\tq.uncertain.Add(1)\n\tcase errors.Is(err, limiter.ErrUnavailable):\n\t\tq.late", without: "\tcase errors.Is(err, limiter.ErrUnavailable):\n\t\tq.late",
			},
		}),
		in("pkg/aggregator", []mutant{
			{
				name: "usage is written before the position", file: "worker.go", found: "TestThePositionIsBehindTheCount",
				rule: "\terr := w.count(ctx)\n\tif err == nil {\n\t\tw.finishSplits(ctx)\n", without: "\terr := w.save(ctx, end)\n\tif err == nil {\n\t\terr = w.count(ctx)\n\t\tw.finishSplits(ctx)\n",
			},
			{
				name: "a lease of the stream is free after a term", file: "round.go", found: "TestTakeoverWithinAMinute",
				rule: ">= p.cfg.Term)", without: ">= p.cfg.Term/4)",
			},
			{
				name: "each owner has a fence of its own", file: "round.go", found: "TestAnotherProcessTakesOver",
				rule: "l.Owner, l.Fence = p.cfg.Owner, l.Fence+1", without: "l.Owner = p.cfg.Owner",
			},
			{
				name: "a part that failed is written again", file: "batch.go", found: "TestEachRecordCountsOnce",
				rule: "\t\tif o.err == nil {\n\t\t\tdelete(b.parts, s)\n", without: "\t\tif o.err == nil || o.written >= 0 {\n\t\t\tdelete(b.parts, s)\n",
			},
			{
				name: "a shard that is dropped is flushed", file: "worker.go", found: "TestRecordsOfADroppedShardCount",
				rule: "\terr := w.flush(ctx, true)\n\tif err == nil {\n\t\tw.lose", without: "\terr := w.save(ctx, true)\n\tif err == nil {\n\t\tw.lose",
			},
		}),
		in("pkg/embedded", []mutant{
			{
				name: "a block covers under both states", file: "block.go", found: "TestGivingBackWhileAStateIsWritten",
				rule: " && max(s.nextSpent-gives, 0)+takes <= s.nextSize", without: "",
			},
			{
				name: "usage of a limit that is gone is noted", file: "block.go", found: "TestUsageOfALimitThatIsGone",
				rule: "\t\t\tk.put(name, old[i].used)\n", without: "\t\t\t_ = name\n",
			},
			{
				name: "recovery refills before it subtracts", file: "bucketrecord.go", found: "TestACrashTakesTheBlock",
				rule: "\t\t*t = refillAt(*t, r.limits.Params(i), now)\n\t\tsubtractBlock(t, r.limits.At(i), size, carries)\n", without: "\t\tsubtractBlock(t, r.limits.At(i), size, carries)\n\t\t*t = refillAt(*t, r.limits.Params(i), now)\n",
			},
			{
				name: "a clock that is behind refills nothing", file: "bucketrecord.go", found: "TestClocksBetweenLives",
				rule: "\t\tt.Refilled, t.Remainder = now, 0\n\t\treturn t\n", without: "\t\treturn t\n",
			},
			{
				name: "a corrupt commit has an unknown outcome", file: "commit.go", found: "TestACommitOfUnknownOutcomeCoversTheLess",
				rule: ", errors.Is(err, datafile.ErrCorrupt):", without: ":",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "a reservation that expired is refused", file: "keyring.go", found: "TestOpenSaysWhyItRefuses",
				rule: "\tif !now.Before(r.Expires) {\n", without: "\tif now.IsZero() {\n",
			},
			{
				name: "an amount of a limit that the set lacks is refused", file: "record.go", found: "TestParseRefusesWhatCannotBe",
				rule: "\t\tif which >= h.Limits.Len() {\n", without: "\t\tif which > h.Limits.Len() {\n",
			},
		}),
	)
}
