//go:build mutants

package mutants_test

// leaseRules are the rules of package lease.
func leaseRules() []mutant {
	return in("lease", []mutant{
		{
			name: "a renewal brings the need of a request that waits", file: "share.go", found: "TestAPullBringsTheNeedOfTheRequest",
			rule: "max(l.demand*3*s.rtt, l.need)", without: "l.demand * 3 * s.rtt",
		},
		{
			name: "every candidate covers a request", file: "stock.go", found: "TestServedByAllCandidates",
			rule: "\tfor i := range s.cands {\n\t\tc := &s.cands[i]\n\t\tfor _, d := range draws {\n\t\t\tb := &c.buckets[d.Limit]\n\t\t\t*b = b.Refill", without: "\tfor i := range s.cands[:1] {\n\t\tc := &s.cands[i]\n\t\tfor _, d := range draws {\n\t\t\tb := &c.buckets[d.Limit]\n\t\t\t*b = b.Refill",
		},
		{
			name: "every candidate pays a request", file: "stock.go", found: "TestServedByAllCandidates",
			rule: "\tfor i := range s.cands {\n\t\tc := &s.cands[i]\n\t\tfor _, d := range draws {\n\t\t\tb := &c.buckets[d.Limit]\n\t\t\t*b = b.Subtract", without: "\tfor i := range s.cands[:1] {\n\t\tc := &s.cands[i]\n\t\tfor _, d := range draws {\n\t\t\tb := &c.buckets[d.Limit]\n\t\t\t*b = b.Subtract",
		},
		{
			name: "new rate counts from the reply, and given rate is gone from the plan", file: "candidate.go", found: "TestCandidateOfAWrite",
			rule: "min(base.rate, p.Slot.Rate)", without: "max(base.rate, p.Slot.Rate)",
		},
		{
			name: "new room counts from the reply", file: "candidate.go", found: "TestCandidateOfAWrite",
			rule: "min(c.params[l].Capacity, base.params[l].Capacity+max(p.Draw[l], 0))", without: "c.params[l].Capacity",
		},
		{
			name: "a lease ends by the monotonic clock", file: "candidate.go", found: "TestEnd",
			rule: "now.Mono-c.sent.Mono < Term && ", without: "",
		},
		{
			name: "a lease ends by the wall clock", file: "candidate.go", found: "TestEnd",
			rule: " && now.Wall-c.sent.Wall < Term", without: "",
		},
		{
			name: "a lease ends with the era of its clock", file: "candidate.go", found: "TestEnd",
			rule: "now.Era == c.sent.Era && ", without: "",
		},
		{
			name: "a term is from before the send", file: "life.go", found: "TestEnd",
			rule: "\twon.confirm(l.stock.limits)", without: "\twon.sent = c\n\twon.confirm(l.stock.limits)",
		},
		{
			name: "kept tokens serve no other request", file: "stock.go", found: "TestKeep",
			rule: "b.Tokens-s.kept[d.Limit] < d.Need", without: "b.Tokens < d.Need",
		},
		{
			name: "a lease write without a reply stays a candidate", file: "life.go", found: "TestGrantUnanswered",
			rule: "\tl.happen(unanswered)\n", without: "\tl.stock.cands = l.stock.cands[:len(l.stock.cands)-1]\n\tl.happen(unanswered)\n",
		},
		{
			name: "an older image tells nothing", file: "holder.go", found: "TestOlderImage",
			rule: "\tif !v.Version.after(h.known.view.Version) {\n\t\treturn", without: "\tif false {\n\t\treturn",
		},
		{
			name: "refill before the reply is at the old rate", file: "holder.go", found: "TestNewRateCountsFromTheReply",
			rule: "\th.cands.refill(now)\n\th.life.alive(c)\n\th.life.settle", without: "\th.life.alive(c)\n\th.life.settle",
		},
		{
			name: "kept tokens are spent by the admitted request", file: "stock.go", found: "TestKeep",
			rule: "\t\tif admitted {\n", without: "\t\tif false {\n",
		},
		{
			name: "kept tokens end with their lease", file: "stock.go", found: "TestKeep",
			rule: "\t\treturn !admitted\n\t}\n\tfor", without: "\t\treturn true\n\t}\n\tfor",
		},
		{
			name: "given tokens are gone from the plan", file: "candidate.go", found: "TestCandidateOfAWrite",
			rule: "Tokens: b.Tokens + p.Draw[l]", without: "Tokens: b.Tokens + max(p.Draw[l], 0)",
		},
		{
			name: "a lease that is being returned is not served", file: "state.go", found: "TestStatesThatServe",
			rule: "return s == Held || s == Renewing }", without: "return s == Held || s == Renewing || s == Returning }",
		},
		{
			name: "a lease that is not in the item is over", file: "life.go", found: "TestSlotIsAnother",
			rule: "\tcase at < 0 && cands[0].leases():\n\t\tl.lose(now)\n", without: "",
		},
		{
			name: "a refund into a lease keeps to its room", file: "stock.go", found: "TestRefundBeyondTheRoom",
			rule: "\t\tmost = min(most, max(c.params[limit].Capacity-c.buckets[limit].Tokens, 0))", without: "\t\tmost = min(most, amount)",
		},
		{
			name: "a lease with kept tokens is not returned", file: "choose.go", found: "TestKeep",
			rule: " && !d.keeps():", without: ":",
		},
		{
			name: "a renewal without a reply does not lengthen the term", file: "life.go", found: "TestUnknownRenewalDoesNotLengthenTheTerm",
			rule: "!l.stock.cands[0].alive(c)", without: "!l.stock.cands[len(l.stock.cands)-1].alive(c)",
		},
		{
			name: "an impossible event ends the lease", file: "life.go", found: "TestImpossibleEvent",
			rule: "\t\tnext = Ended\n", without: "\t\tnext = Held\n",
		},
		{
			name: "a grant that is seen after its term is over", file: "life.go", found: "TestGrantUnanswered",
			rule: "\tif !won.alive(c) {", without: "\tif false {",
		},
		{
			name: "a lease draws at most the tokens that are there", file: "reckon.go", found: "TestDrawn",
			rule: "return min(draw, max(tokens, 0), room-own)", without: "return min(draw, room-own)",
		},
		{
			name: "a lease draws at most the room that it leaves", file: "reckon.go", found: "TestDrawn",
			rule: "return min(draw, max(tokens, 0), room-own)", without: "return min(draw, max(tokens, 0), max(room-own, draw))",
		},
		{
			name: "room comes with its tokens", file: "reckon.go", found: "TestDrawn",
			rule: "\tdraw = max(draw, tokens-portion(whole, p.OldRoom+v.Room-p.Slot.Room))\n", without: "",
		},
		{
			name: "kept tokens are not given back", file: "reckon.go", found: "TestDrawn",
			rule: "max(want, k.stock.kept[l], 0)", without: "max(want, 0)",
		},
		{
			name: "a lease is returned when it is asked back", file: "view.go", found: "TestRecall",
			rule: "\tif v.Recall {\n\t\treturn forever\n\t}\n", without: "\tif true {\n\t\treturn 0\n\t}\n",
		},
		{
			name: "two requests keep tokens apart", file: "stock.go", found: "TestKeep",
			rule: "\t\ts.kept[d.Limit] += d.Take", without: "\t\ts.kept[d.Limit] = d.Take",
		},
		{
			name: "a charge of a lease is bounded", file: "stock.go", found: "TestCharge",
			rule: "-s.kept[limit]+overdraft", without: "-s.kept[limit]",
		},
		{
			name: "each lease write has a sequence number of its own", file: "choose.go", found: "TestServedByAllCandidates",
			rule: "d.seq + 1 + uint16(p.draw*seqSalt)", without: "d.seq",
		},
		{
			name: "a lease is over before it is freed", file: "scale.go", found: "TestALeaseIsOverBeforeItIsFreed",
			rule: "ReapAfter = Term + Term/8", without: "ReapAfter = Term / 4",
		},
		{
			name: "clocks that differ by an eighth do not free a lease early", file: "scale.go", found: "TestALeaseIsOverBeforeItIsFreed",
			rule: "ReapAfter = Term + Term/8", without: "ReapAfter = Term",
		},
		{
			name: "a renewed lease is not dead", file: "watch.go", found: "TestWatch",
			rule: "!ok || old.seq != s.Seq", without: "!ok",
		},
		{
			name: "a lease is returned when none is wanted", file: "duties.go", found: "TestPolicy",
			rule: "return d.recall || d.known.policy.None || now < d.asked", without: "return d.recall || now < d.asked",
		},
		{
			name: "a lease is returned when another replica asks for it", file: "duties.go", found: "TestRecall",
			rule: " || now < d.asked\n", without: "\n",
		},
		{
			name: "no lease is asked for after the demand has ended", file: "duties.go", found: "TestNoGrantWithoutRequest",
			rule: "return now < d.quietAt() && d.known.worth(now)", without: "return d.known.worth(now)",
		},
		{
			name: "no lease is asked for without enough demand", file: "duties.go", found: "TestSteadyDemand",
			rule: "return now < d.quietAt() && d.known.worth(now)", without: "return now < d.quietAt()",
		},
	})
}
