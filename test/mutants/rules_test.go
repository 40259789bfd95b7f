//go:build mutants

package mutants_test

// mutant is the store without one of its rules.
type mutant struct {
	name    string
	file    string
	rule    string // text that stands in the file once
	without string // text in its place
	found   string // the tests that miss it, a pattern
}

func mutants() []mutant {
	return []mutant{
		{
			name: "a dead lease is freed only after its term and an eighth", file: "holder.go",
			rule: "leaseEbb  = leaseTerm + leaseTerm/8", without: "leaseEbb  = leaseTerm",
			found: "TestACrashedHolder.*",
		},
		{
			name: "a change refills under the old limits", file: "adopt.go",
			rule: "at := refilled(old, max(now, old.state.Refilled))", without: "fresh := next\n\tfresh.state = old.state\n\tat := refilled(&fresh, max(now, old.state.Refilled))",
			found: "TestRemainderOfASlowRate",
		},
		{
			name: "only a later refill shows that a lease write is gone", file: "holder.go",
			rule: "f.refilled < v.refilled", without: "f.refilled <= v.refilled",
			found: "TestARenewalLandsWhenItIsSeen",
		},
		{
			name: "a refund into a lease keeps within the part not reported", file: "holder.go",
			rule: "left <= p.quantity-p.reported", without: "left <= p.quantity",
			found: "TestARenewalLandsWhenItIsSeen",
		},
		{
			name: "a dead lease counts as spent", file: "leasestep.go",
			rule: "\t\t\tp.stage.report(a, false)\n", without: "\t\t\tp.stage.lease(a.limit).giveBack(a.tokens)\n",
			found: fleets,
		},
		{
			name: "a write is gone only if its slot is unchanged", file: "lane.go",
			rule: "\tcase image.slots[w.slot] != w.base.slots[w.slot], image.booked[w.slot] != w.base.booked[w.slot]:\n\t\treturn false\n", without: "",
			found: "TestAGiftThatCannotArrive.*",
		},
		{
			name: "a shard with leases out is neither split nor merged", file: "shape.go",
			rule: "if v.shard.Moving || v.shard.Retired || len(v.leases) > 0 {", without: "if !v.shard.Moving && !v.shard.Retired {\n\t\treturn true\n\t}\n\tif v.shard.Moving || v.shard.Retired {",
			found: "TestDeadLeasesMakeWayForAMerge",
		},
		{
			name: "a report is not planned before the decisions that it reports", file: "lease.go",
			rule: "\tk.now = max(k.now, h.clock)\n", without: "",
			found: "TestAReportIsNotBeforeWhatWasServed",
		},
		{
			name: "maintenance is not planned before the last take", file: "chore.go",
			rule: "v.refilled, v.taken, ", without: "v.refilled, ",
			found: "TestMaintenanceIsNotBeforeTheLastTake",
		},
		{
			name: "the ttl covers dormant limits", file: "write.go",
			rule: "b := &s.base.balances[i]; b.dormant {", without: "b := &s.base.balances[i]; b == nil {",
			found: "TestTheTTLCoversDormantLimits",
		},
		{
			name: "a full refill bounds the tokens out on lease", file: "write.go",
			rule: "if b.lease && b.mostHeld != noUpperBound {", without: "if b.lease && b.mostHeld < 0 {",
			found: "TestHoles",
		},
		{
			name: "a lease that is being returned is not served", file: "holder.go",
			rule: " && !h.returning()", without: "",
			found: "TestSimulation",
		},
		{
			name: "a refill that counts on a remainder pins it", file: "write.go",
			rule: "if b.state.Remainder > 0 && (", without: "if b.state.Remainder < 0 && (",
			found: "TestHoles",
		},
		{
			name: "a change of limits pins the time of the last refill", file: "swap.go",
			rule: "\te.Require(schema.AttrRefilled, \"=\", schema.NumberAttribute(v.refilled))\n", without: "",
			found: "TestHoles",
		},
	}
}
