//go:build mutants

package mutants_test

import "slices"

// extraRules are the rules on tokens above the capacity.
func extraRules() []mutant {
	return slices.Concat(
		in("pkg/tokenbucket", []mutant{
			{name: "refill neither adds to an extra nor takes it away", file: "tokenbucket.go", found: "TestExtra", lines: 4},
			{name: "tokens above the capacity are an extra", file: "tokenbucket.go", found: "TestExtra", lines: 4},
			{name: "takes use the extra first", file: "tokenbucket.go", found: "TestExtra", lines: 3},
			{name: "a refund beside an extra adds to it", file: "tokenbucket.go", found: "TestExtra", lines: 3},
			{name: "a change of the parameters keeps an extra", file: "tokenbucket.go", found: "TestExtra", lines: 4},
		}),
		in("plan", []mutant{
			{name: "a limit with an extra is written exactly", file: "form.go", found: "TestExtraIsThatOfOneBucket", lines: 3},
			{
				name: "a return of an extra is an exact write", file: "form.go", found: "TestAReturnedTakeOfAnExtra",
				without: "ok := f.give(st, sp.Give)",
			},
			{name: "no lease begins or grows beside an extra", file: "lease.go", found: "TestExtraBesideLeases", lines: 3},
			{name: "the end of an extra raises the epoch", file: "write.go", found: "TestTheEndOfAnExtraIsExact", lines: 3},
			{
				name: "a shard with an extra is not split", file: "shard.go", found: "TestExtraOfShards",
				without: "if !settled(b) || b.Shard.Level >= schema.MaxShards || b.Shard.Epoch >= schema.MaxEpoch {",
			},
			{name: "a merge keeps an extra", file: "absorb.go", found: "TestExtraOfShards", lines: 4},
			{name: "an item with an extra has no ttl", file: "ttl.go", found: "TestExtraIsThatOfOneBucket", lines: 3},
		}),
	)
}
