//go:build mutants

package mutants_test

import "slices"

// kinRules are guards beside those of the audit.
func kinRules() []mutant {
	return slices.Concat(
		in("lane", []mutant{
			{
				name: "leases that are alive get back what a cascade drew", file: "lease_calls.go", found: "TestACascadeNeedsLeasesThatAreAlive",
				without: "_, _ = l, d",
			},
			{
				name: "a denied cascade has taken nothing", file: "lease_calls.go", found: "TestADeniedCascadeTakesNothing",
			},
			{
				name: "one request denied denies the cascade", file: "lease_calls.go", found: "TestADeniedCascadeTakesNothing",
			},
			{
				name: "what is kept is free again after a denial", file: "lease_keep.go", found: "TestWhatIsKeptIsFreeAgain",
				lines: 3,
			},
			{
				name: "usage that a lease pays counts", file: "lease_serve.go", found: "TestUsageGoesWhereItsTokensGo",
				without: "_ = k",
			},
			{
				name: "usage goes where its tokens go", file: "lease_serve.go", found: "TestUsageGoesWhereItsTokensGo",
				without: "net = 0",
			},
			{
				name: "no lease is asked for at the end", file: "lease_write.go", found: "TestNothingNewIsLeased",
				without: "if l.host.closing.Load() && h.holder == nil {",
			},
			{
				name: "a request with an end is not forwarded", file: "lanes.go", found: "TestARequestOnItsWayHasOneEnd",
				without: "if r.state != over || r.Wait != nil {",
			},
			{
				name: "a request that is abandoned keeps nothing of the lease", file: "leave.go", found: "TestWhatIsKeptIsFreeAgain",
			},
			{
				name: "requests of a shard that is no more keep nothing of its lease", file: "depart.go", found: "TestDepartedRequestsAskForAll",
				lines: 3,
			},
			{
				name: "one charge of a lane is under way at a time", file: "group.go", found: "TestOneChargeAtATime",
				without: "if r.Books() && g.books() && g.pending {",
			},
			{
				name: "no lease of a retired shard", file: "lease_serve.go", found: "TestNothingNewIsLeased",
				without: "if h.holder == nil && !r.Policy.None && (v.state == nil || v.state.Exists()) {",
			},
		}),
		in("lease", []mutant{
			{
				name: "few lease writes are without an outcome", file: "holder.go", found: "TestFewWritesWithoutAnOutcome",
				without: "if s := h.State(); s.InFlight() || s == Unsettled {",
			},
			{
				name: "a failure of an older lease write is none of the newest", file: "life.go", found: "TestAFailureOfAnotherWrite",
				without: "if !d.state.InFlight() {",
			},
		}),
		in("plan", []mutant{
			{
				name: "carried use of both halves is carried", file: "absorb.go", found: "TestHalvesAreTheWhole",
				without: "Carried: min(x.Carried, tokenbucket.MaxCapacity),",
			},
			{
				name: "an adjustment is not before the item", file: "adjusted.go", found: "TestNoAdjustmentIsBeforeTheItem",
			},
			{
				name: "only shards that are settled are merged", file: "absorb.go", found: "TestShardsWithLeasesStay",
				without: "if !b.Shard.Sharded() || b.Shard.Index >= b.Shard.Level/2 || b.Shard.Epoch >= schema.MaxEpoch {",
			},
			{
				name: "the slot tells that a return was not applied", file: "outcome.go", found: "TestAReturnTellsItsOutcome",
				lines: 2,
			},
			{
				name: "a return that counts leaves its id", file: "write.go", found: "TestAReturnTellsItsOutcome",
				without: "named := len(s.results) > 0 || s.folded || s.marks",
			},
		}),
		in("engine", []mutant{
			{
				name: "a failed part admits no call", file: "take.go", found: "TestAFailedBucketGivesBackTheOthers",
			},
			{
				name: "late parts are the lane's to give back", file: "take.go", found: "TestEachShardGetsItsPartBack",
				without: "if (!a.request.Keep || failed == nil || errors.Is(failed, limiter.ErrInvalid)) {",
			},
			{
				name: "a closed engine takes no calls", file: "engine.go", found: "TestCloseWaitsForCalls",
				without: `if e.closed && e.cfg.Table == "" {`,
			},
			{
				name: "calls in flight are waited for", file: "engine.go", found: "TestCloseWaitsForCalls",
			},
		}),
		in("engine", []mutant{
			{
				name: "a shard that denied gave nothing", file: "shard_branch.go", found: "TestABranchCollectsWhatIsThere",
				without: "case r.Admitted || sp.Take > 0:",
			},
			{
				name: "a charge that no shard holds goes to all", file: "shard_branch.go", found: "TestPartsOfAChargeAreTheWhole",
				without: "return each(b.op, l, func(sp *plan.Spend, capacity int64) bool { return sp.Give <= capacity })",
			},
			{
				name: "one request of a process takes from several shards", file: "shard_tree.go", found: "TestOneRequestGathers",
				without: "if t.gathering.Store(true); false {",
			},
			{
				name: "where requests take tokens from each other one seldom tries", file: "shard_tree.go", found: "TestOneRequestGathers",
				without: "if now.IsZero() {",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "nothing is queued after the end", file: "ledger_queue.go", found: "TestCloseEndsTries",
				without: "ok := (!q.closed || q.first > 0) && len(q.pending)+q.trying+int(q.late.Load()) < q.most",
			},
			{
				name: "a late try without an answer is queued", file: "ledger_first.go", found: "TestChargeIsKept",
			},
			{
				name: "a charge of unknown outcome is not queued", file: "ledger.go", found: "TestUncertainOfAMixedRequest",
				lines: 4,
			},
			{
				name: "a late try of unknown outcome is not repeated", file: "ledger_first.go", found: "TestALateTryOfUnknownOutcome",
				lines: 2,
			},
		}),
		in("pkg/aggregator", []mutant{
			{
				name: "usage is written before the position", file: "worker.go", found: "TestThePositionIsBehindTheCount",
				lines: 2, without: "err := w.save(ctx, end)\nif err == nil {\n\terr = w.count(ctx)",
			},
			{
				name: "a lease of the stream is free after a term", file: "round.go", found: "TestTakeoverWithinAMinute",
				without: `return !p.working[l.Shard] && l.Problem == nil && (l.Owner == "" || time.Since(p.seen[l.Shard].since) >= p.cfg.Term/4)`,
			},
			{
				name: "each owner has a fence of its own", file: "round.go", found: "TestAnotherProcessTakesOver",
				without: "err := h.write(ctx, func(l *Lease) { l.Owner = p.cfg.Owner })",
			},
			{
				name: "a part that failed is written again", file: "batch.go", found: "TestEachRecordCountsOnce",
				without: "if o.err == nil || o.written >= 0 {",
			},
			{
				name: "a shard that is dropped is flushed", file: "worker.go", found: "TestRecordsOfADroppedShardCount",
				without: "err := w.save(ctx, true)",
			},
		}),
		in("pkg/embedded", []mutant{
			{
				name: "a block covers under both states", file: "block.go", found: "TestGivingBackWhileAStateIsWritten",
				without: "return takes == 0 || max(s.spent-gives, 0)+takes <= s.size",
			},
			{
				name: "usage of a limit that is gone is noted", file: "block.go", found: "TestUsageOfALimitThatIsGone",
				without: "_ = name",
			},
			{
				name: "recovery refills before it subtracts", file: "bucketrecord.go", found: "TestACrashTakesTheBlock",
				lines: 2, without: "subtractBlock(t, r.limits.At(i), size, carries)\n*t = refillAt(*t, r.limits.Params(i), now)",
			},
			{
				name: "a clock that is behind refills nothing", file: "bucketrecord.go", found: "TestClocksBetweenLives",
			},
			{
				name: "a corrupt commit has an unknown outcome", file: "commit.go", found: "TestACommitOfUnknownOutcomeCoversTheLess",
				without: "case errors.Is(err, datafile.ErrUncertain):",
			},
		}),
		in("pkg/limiter", []mutant{
			{
				name: "an answer that is not the bucket's state is not cached", file: "denycache.go", found: "TestDenialsOfBucketsAreCached",
				without: "if op.Late {",
			},
			{
				name: "a request in flight is in the next quarter too", file: "levelops.go", tested: "pkg/rls", found: "TestInFlightWithoutEnd",
				without: "if false {",
			},
			{
				name: "the quarter after the last one is in the next window", file: "scratch.go", tested: "pkg/rls", found: "TestInFlightWithoutEnd",
				without: "if false {",
			},
			{
				name: "what is in flight is held once", file: "holding.go", tested: "pkg/rls", found: "TestInFlight",
				without: "if inFlight && !b.window.InFlight() {",
			},
			{
				name: "a request in flight ends whatever it used", file: "book.go", tested: "pkg/rls", found: "TestInFlight",
				without: "ends := false",
			},
		}),
		in("pkg/reservation", []mutant{
			{
				name: "a reservation that expired is refused", file: "keyring.go", found: "TestOpenSaysWhyItRefuses",
				without: "if now.IsZero() {",
			},
			{
				name: "an amount of a limit that the set lacks is refused", file: "record.go", found: "TestParseRefusesWhatCannotBe",
				without: "if which > h.Limits.Len() {",
			},
		}),
	)
}
