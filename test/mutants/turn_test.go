//go:build mutants

package mutants_test

import "slices"

// turnRules are those of turns, of marks of newer limits, and of copies that are
// applied late.
func turnRules() []mutant {
	return slices.Concat(
		in("lane", []mutant{
			{
				name: "nothing is written while another replica has a turn", file: "turn.go", found: "TestTurnsOfOthers",
				without: "_, t.seen = now.Add(trip), turn.ID",
			},
			{
				name: "each turn is held once", file: "turn.go", found: "TestTurnsOfOthers",
				without: "default:",
			},
			{
				name: "a turn is over with its exact write", file: "turn.go", found: "TestTurnsOfOthers",
			},
			{
				name: "a turn is asked for where other writes come before", file: "turn.go", found: "TestATurnIsAskedFor",
				without: "return soon && l.crowded(now)",
			},
			{
				name: "no turn is asked for a task without work", file: "maintain.go", found: "TestTasksWithoutWorkAreLeftOut", lines: 3,
			},
			{
				name: "a turn is not asked for again before the exact write", file: "turn.go", found: "TestATurnIsAskedFor",
				without: "if state == nil || state.Shard.Epoch >= schema.MaxEpoch {",
			},
			{
				name: "a copy that is applied late is counted as lost", file: "channel.go", found: "TestALateCopyIsCounted",
				without: `if id != "" && id == c[i].last {`,
			},
			{
				name: "what is owed for a request of a stray is booked once", file: "strays.go", found: "TestWhatIsOwedForAStrayIsBookedOnce", without: "_ = r",
			},
			{
				name: "no request joins one that a write may have booked", file: "lane_parts.go", found: "TestOwedRequestsJoin", without: "_ = i",
			},
			{
				name: "the take of a stray whose request is over is counted as lost", file: "strays.go", found: "TestTakesOfStraysAreCounted", without: "_ = i",
			},
			{
				name: "the channel rests that has rested longest", file: "channel.go", found: "TestChannelsRest",
				without: "if best < 0 {",
			},
			{
				name: "what is denied is denied while limits wait", file: "group.go", found: "TestWhatIsDeniedIsDeniedWhileLimitsWait",
				without: "case plan.Pending:\n\tg.brings = true",
			},
			{
				name: "nothing is answered by limits that a write changes", file: "group.go", found: "TestWhatIsDeniedIsDeniedWhileLimitsWait",
				without: "g.pending = true",
			},
			{
				name: "a turn comes beside writes under way", file: "step.go", found: "TestATurnComesBesideWritesUnderWay",
				without: "case g.held:",
			},
			{
				name: "a busy lease is looked at often", file: "lease_look.go", found: "TestABusyLeaseLooksOften",
				without: "every := lookRequests / 1e-3",
			},
			{
				name: "the last lease is returned behind a turn", file: "lease_write.go", found: "TestTheLastLeaseIsReturnedBehindATurn",
				without: "if l.asks(reaps) && l.turner.turnDue(last && false, now) {",
			},
			{
				name: "a return beside others is tried without a turn first", file: "lease_write.go", found: "TestTheLastLeaseIsReturnedBehindATurn",
				without: "last = l.turner.turns.lost >= 0",
			},
			{
				name: "a lease write has its reply before an image shows it", file: "outdate.go", found: "TestALaneIsShownNothingBesideALeaseWrite",
				without: "if image == nil || len(l.out) > 1 {",
			},
			{
				name: "a wait for returns ends with the last one", file: "image.go", found: "TestWritesComeAfterReturnsOfOthers",
				without: "l.turns.yield = later(l.turns.yield, now)",
			},
			{
				name: "returns of others come before writes", file: "turn.go", found: "TestWritesComeAfterReturnsOfOthers",
				without: "t.yield = now.Add(min(0*trip*time.Duration(min(image.Holders(), mostYield)), schema.MaxHold))",
			},
			{
				name: "a wait for a change ends with any change", file: "lease_state.go", found: "TestAWaitForAChangeEndsWithIt",
				without: "case image.Version.Generation >= c.generation:",
			},
			{
				name: "a lease is of the share of the shard", file: "lease_state.go", found: "TestALeaseIsOfTheShareOfTheShard",
				without: "return h.hash == hash",
			},
			{
				name: "a lease that is copied while it was throttled is the own", file: "lease_write.go", found: "TestACopyOfAThrottledLeaseWrite",
				without: "if perhaps || awsdb.Retryable(nil) { // a copy of it may be applied after one that was throttled",
			},
		}),
		in("plan", []mutant{
			{
				name: "what a shard has no room for is counted", file: "outcome.go", found: "TestWhatASplitShardHasNoRoomForIsTold",
				without: "if gave < 0 && above > 0 {",
			},
			{
				name: "what a leased item has no room for is counted", file: "outcome.go", found: "TestWhatALeasedItemHasNoRoomForIsTold",
				without: "if w.stage == nil || !image.Shard.Sharded() || image.Shard.Epoch != w.base.Shard.Epoch {",
			},
			{
				name: "what an exact write has no room for is counted", file: "outcome.go", found: "TestWhatAnExactWriteHasNoRoomForIsTold",
				without: "return 0",
			},
			{
				name: "a turn raises the epoch", file: "turn.go", found: "TestATurnEndsWritesUnderWay",
			},
			{
				name: "a turn ends no other that it has not seen", file: "turn.go", found: "TestATurnEndsWritesUnderWay",
			},
			{
				name: "a turn lands beside takes", file: "outcome.go", found: "TestOvertaken",
				without: "return w.exact && image != nil",
			},
		}),
	)
}
