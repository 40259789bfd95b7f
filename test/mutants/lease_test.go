//go:build mutants

package mutants_test

// leaseRules are the rules of package lease.
func leaseRules() []mutant {
	return in("lease", []mutant{
		{
			name: "a renewal brings the need of a request that waits", file: "share.go", found: "TestAPullBringsTheNeedOfTheRequest",
			without: "if need := l.demand * 3 * s.rtt; stock < need { // the part that the rate does not bring",
		},
		{
			name: "every candidate covers a request", file: "stock.go", found: "TestServedByAllCandidates",
			without: "for i := range s.cands[:1] {",
		},
		{
			name: "every candidate pays a request", file: "stock.go", found: "TestServedByAllCandidates",
			without: "for i := range s.cands[:1] {",
		},
		{
			name: "new rate counts from the reply, and given rate is gone from the plan", file: "candidate.go", found: "TestCandidateOfAWrite",
			without: "params:  share(limits, max(base.rate, p.Slot.Rate), p.Slot.Room),",
		},
		{
			name: "new room counts from the reply", file: "candidate.go", found: "TestCandidateOfAWrite",
			without: "c.params[l].Capacity = c.params[l].Capacity",
		},
		{
			name: "a renewal that was lost is planned anew soon", file: "life.go", found: "TestALostRenewalIsPlannedAnew", without: "",
		},
		{
			name: "a lease ends by the monotonic clock", file: "candidate.go", found: "TestEnd",
			without: "return now.Era == c.sent.Era && now.Wall-c.sent.Wall < Term",
		},
		{
			name: "a lease ends by the wall clock", file: "candidate.go", found: "TestEnd",
			rule: "a lease ends by the monotonic clock", without: "return now.Era == c.sent.Era && now.Mono-c.sent.Mono < Term",
		},
		{
			name: "a lease ends with the era of its clock", file: "candidate.go", found: "TestEnd",
			rule: "a lease ends by the monotonic clock", without: "return now.Mono-c.sent.Mono < Term && now.Wall-c.sent.Wall < Term",
		},
		{
			name: "a term is from before the send", file: "life.go", found: "TestEnd",
			without: "}\nwon.sent = c",
		},
		{
			name: "kept tokens serve no other request", file: "stock.go", found: "TestKeep",
			without: "if b.Tokens < d.Need {",
		},
		{
			name: "a lease write without a reply stays a candidate", file: "life.go", found: "TestGrantUnanswered",
			without: "}\nl.stock.cands = l.stock.cands[:len(l.stock.cands)-1]",
		},
		{
			name: "an older image tells nothing", file: "holder.go", found: "TestOlderImage",
			without: "if false {",
		},
		{
			name: "refill before the reply is at the old rate", file: "holder.go", found: "TestNewRateCountsFromTheReply",
		},
		{
			name: "kept tokens are spent by the admitted request", file: "stock.go", found: "TestKeep",
			without: "if false {",
		},
		{
			name: "kept tokens end with their lease", file: "stock.go", found: "TestKeep",
			without: "return true",
		},
		{
			name: "given tokens are gone from the plan", file: "candidate.go", found: "TestCandidateOfAWrite",
			without: "c.buckets[l] = tokenbucket.Bucket{Tokens: b.Tokens + max(p.Draw[l], 0), Remainder: b.Remainder, Refilled: b.Refilled}",
		},
		{
			name: "a lease that is being returned is not served", file: "state.go", found: "TestStatesThatServe",
			without: "func (s State) Serves() bool { return s == Held || s == Renewing || s == Returning }",
		},
		{
			name: "a lease that is not in the item is over", file: "life.go", found: "TestSlotIsAnother",
			lines: 2,
		},
		{
			name: "a refund into a lease keeps to its room", file: "stock.go", found: "TestRefundBeyondTheRoom",
			without: "most = min(most, amount)",
		},
		{
			name: "a lease with kept tokens is not returned", file: "choose.go", found: "TestKeep",
			without: "case d.stock.serves && p.local >= d.idleAt():",
		},
		{
			name: "a renewal without a reply does not lengthen the term", file: "life.go", found: "TestUnknownRenewalDoesNotLengthenTheTerm",
			without: "if !l.stock.cands[len(l.stock.cands)-1].alive(c) {",
		},
		{
			name: "an impossible event ends the lease", file: "life.go", found: "TestImpossibleEvent",
			without: "next = Held",
		},
		{
			name: "a grant that is seen after its term is over", file: "life.go", found: "TestGrantUnanswered",
			without: "if false {",
		},
		{
			name: "a lease draws at most the tokens that are there", file: "reckon.go", found: "TestDrawn",
			without: "return min(draw, room-own)",
		},
		{
			name: "a lease draws at most the room that it leaves", file: "reckon.go", found: "TestDrawn",
			rule: "a lease draws at most the tokens that are there", without: "return min(draw, max(tokens, 0), max(room-own, draw))",
		},
		{
			name: "room comes with its tokens", file: "reckon.go", found: "TestDrawn",
		},
		{
			name: "kept tokens are not given back", file: "reckon.go", found: "TestDrawn",
			without: "draw := max(want, 0) - own",
		},
		{
			name: "a lease is returned when it is asked back", file: "view.go", found: "TestRecall",
			lines: 2, without: "if true {\n\treturn 0",
		},
		{
			name: "two requests keep tokens apart", file: "stock.go", found: "TestKeep",
			without: "s.kept[d.Limit] = d.Take",
		},
		{
			name: "a charge of a lease is bounded", file: "stock.go", found: "TestCharge",
			without: "most := min(amount, max(s.cands.least(limit, now)-s.kept[limit], 0))",
		},
		{
			name: "each lease write has a sequence number of its own", file: "choose.go", found: "TestServedByAllCandidates",
			without: "p.Slot = Slot{Seq: d.seq, At: encodeAt(p.Now)}",
		},
		{
			name: "a lease is over before it is freed", file: "scale.go", found: "TestALeaseIsOverBeforeItIsFreed",
			without: "ReapAfter = Term / 4",
		},
		{
			name: "clocks that differ by an eighth do not free a lease early", file: "scale.go", found: "TestALeaseIsOverBeforeItIsFreed",
			rule: "a lease is over before it is freed", without: "ReapAfter = Term",
		},
		{
			name: "a renewed lease is not dead", file: "watch.go", found: "TestWatch",
			without: "if !ok {",
		},
		{
			name: "a lease is returned when none is wanted", file: "duties.go", found: "TestPolicy",
			without: "return d.recall || now < d.asked",
		},
		{
			name: "a lease is returned when another replica asks for it", file: "duties.go", found: "TestRecall",
			rule: "a lease is returned when none is wanted", without: "return d.recall || d.known.policy.None",
		},
		{
			name: "no lease is asked for after the demand has ended", file: "duties.go", found: "TestNoGrantWithoutRequest",
			without: "func (d *duties) wants(now int64) bool { return d.known.worth(now) }",
		},
		{
			name: "no lease is asked for without enough demand", file: "duties.go", found: "TestSteadyDemand",
			rule: "no lease is asked for after the demand has ended", without: "func (d *duties) wants(now int64) bool { return now < d.quietAt() }",
		},
	})
}
