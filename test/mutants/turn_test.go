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
				rule: "t.seen, t.until = turn.ID, now.Add(max(turn.Hold-trip, 0))", without: "_, t.seen = now.Add(trip), turn.ID",
			},
			{
				name: "each turn is held once", file: "turn.go", found: "TestTurnsOfOthers",
				rule: "case turn.ID != t.seen:", without: "default:",
			},
			{
				name: "a turn is over with its exact write", file: "turn.go", found: "TestTurnsOfOthers",
				rule: "\t\tt.until = time.Time{}\n", without: "",
			},
			{
				name: "a turn is asked for where other writes come before", file: "turn.go", found: "TestATurnIsAskedFor",
				rule: "return l.turns.lost >= turnAfter || soon && l.crowded(now)", without: "return soon && l.crowded(now)",
			},
			{
				name: "a turn is not asked for again before the exact write", file: "turn.go", found: "TestATurnIsAskedFor",
				rule: "if l.turns.mine || state == nil", without: "if state == nil",
			},
			{
				name: "a copy that lands late is counted as lost", file: "channel.go", found: "TestALateCopyIsCounted",
				rule: "id != \"\" && id != c[i].last", without: "id != \"\" && id == c[i].last",
			},
			{
				name: "the channel rests that has rested longest", file: "channel.go", found: "TestChannelsRest",
				rule: "if best < 0 || c[i].rest.Before(c[best].rest) {", without: "if best < 0 {",
			},
			{
				name: "what is denied is denied while limits wait", file: "group.go", found: "TestWhatIsDeniedIsDeniedWhileLimitsWait",
				rule: "\tcase plan.Pending:\n\t\tl.lease.cede()\n", without: "\tcase plan.Pending:\n\t\tg.brings = true\n\t\tl.lease.cede()\n",
			},
			{
				name: "nothing is answered by limits that a write changes", file: "group.go", found: "TestWhatIsDeniedIsDeniedWhileLimitsWait",
				rule: "\tcase plan.Newer:\n\t\tg.brings, g.pending = true, true\n", without: "\tcase plan.Newer:\n\t\tg.pending = true\n",
			},
			{
				name: "a lease is of the share of the shard", file: "lease_state.go", found: "TestALeaseIsOfTheShareOfTheShard",
				rule: " && h.level == level", without: "",
			},
			{
				name: "a lease that is copied while it was throttled is the own", file: "lease_write.go", found: "TestACopyOfAThrottledLeaseWrite",
				rule: "if perhaps || awsdb.Retryable(err) {", without: "if perhaps || awsdb.Retryable(nil) {",
			},
		}),
		in("plan", []mutant{
			{
				name: "what a shard has no room for is counted", file: "outcome.go", found: "TestWhatASplitShardHasNoRoomForIsTold",
				rule: "if above.Sign() > 0 {", without: "if above.Sign() > 1 {",
			},
			{
				name: "what a leased item has no room for is counted", file: "outcome.go", found: "TestWhatALeasedItemHasNoRoomForIsTold",
				rule: " && !image.Leased() ||", without: " ||",
			},
			{
				name: "a turn raises the epoch", file: "turn.go", found: "TestATurnEndsWritesUnderWay",
				rule: "\tafter.Shard.Epoch++\n", without: "",
			},
			{
				name: "a turn lands beside takes", file: "outcome.go", found: "TestOvertaken",
				rule: "return w.exact && image != nil && image.Shard.Epoch == w.base.Shard.Epoch", without: "return w.exact && image != nil",
			},
		}),
	)
}
