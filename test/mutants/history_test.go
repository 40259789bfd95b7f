//go:build mutants

package mutants_test

import "slices"

// historyRules are those of a server that comes back with an older state.
func historyRules() []mutant {
	return slices.Concat(
		in("lane", []mutant{
			{
				name: "a server that came back gets what is owed", file: "handover.go", tested: "engine", found: "TestLateAdmissionsAreBookedAfterAServerCameBack",
				without: "_ = r",
			},
			{
				name: "leases of the lanes before are freed at once", file: "handover.go", tested: "engine", found: "TestAServerThatComesBackOlder",
			},
			{
				name: "the next lanes take nothing for a call that was denied", file: "ends.go", found: "TestOwedRequestsOfTheLanesBefore",
				without: "if r.Request == nil {",
			},
			{
				name: "a late admission in doubt is booked again", file: "ends.go", found: "TestALateAdmissionInDoubtIsBookedAgain",
				without: "case false:",
			},
			{
				name: "a lease is freed as of now, as its holder may have served until then", file: "lease_write.go", found: "TestALeaseIsFreedAsOfNow",
				without: "if len(l.queue) == 0 && h.holds() {",
			},
		}),
		in("plan", []mutant{
			{
				name: "an older state gives nothing twice", file: "heal.go", found: "TestHealTakesWhatIsMissing",
				without: "if n := p.tokens() - of.tokens(); n > 1<<60 {",
			},
		}),
		in("engine", []mutant{
			{
				name: "a call in doubt is not made again", file: "store.go", found: "TestAChargeInDoubtIsNotMadeAgain",
				without: "return ended",
			},
			{
				name: "what an engine loses at its end is counted", file: "storerenew.go", found: "TestAWriteUnderWayWhileThePlacesChange",
			},
			{
				name: "no bucket is taken from in the quiet time", file: "storehealing.go", found: "TestAReplicaThatRemembersLess",
				without: "case <-time.After(0):",
			},
			{
				name: "what was remembered before stays taken", file: "storehealing.go", found: "TestAServerThatIsLostTwice",
			},
			{
				name: "a bucket is healed before it is taken from", file: "store.go", found: "TestManyBuckets",
				without: "if err := h.before(ctx, nil); err != nil {",
			},
			{
				name: "a bucket whose server has lost nothing keeps what it has", file: "storehealing.go", found: "TestABucketOfAServerThatLostNothing",
				without: "if _ = left; true {",
			},
		}),
		in("pkg/valkey", []mutant{
			{
				name: "a table has its places for as long as the process lives", file: "cluster.go", found: "TestServersOfAnotherKind",
				without: "if err == nil && had != nil && owners != nil && had.Addresses == nil {",
			},
		}),
		in("pkg/valkey/internal/items", []mutant{
			{
				name: "nothing is applied in other places before the first", file: "across.go", found: "TestAcrossPlaces",
				without: "if err := s.applyPart(ctx, token, writes, first, 0, r); err != nil {",
			},
			{
				name: "what was deleted by an earlier try rests on the condition of this one", file: "across.go", found: "TestDeletionsAcrossPlaces",
				without: "if plain && false {",
			},
			{
				name: "a reply shows that it is that to its write", file: "reply.go", found: "TestReplyToAnotherWrite",
				without: "if id, err := reply[3].ToString(); err != nil || !r.applied || n != 1 || id == \"\" {",
			},
			{
				name: "one record stands beside one bucket", file: "claim.go", found: "TestOneRecordForOneBucket",
				without: "c.claimant, c.ItemWrite = writes[bucket].Key.PK, schema.NewPut(c.Item)",
			},
		}),
	)
}
