//go:build mutants

package mutants_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// simulated is a mutant that the simulation of fleets is to find.
type simulated struct {
	mutant

	only  string // features of the runs
	seeds int    // runs; 0 = usualSeeds
}

// simulates is how long the runs for a mutant may take.
const simulates = 9 * time.Minute

// usualSeeds is how many runs a mutant is to be found within.
const usualSeeds = 200

// by says by which features mutants of a package are found.
func by(pkg, file, name, only, rule, without string) simulated {
	return simulated{mutant: mutant{pkg: pkg, file: file, name: name, rule: rule, without: without}, only: only}
}

// simulatedRules are the rules of the protocol whose absence the simulation finds.
func simulatedRules() []simulated {
	return []simulated{
		by("plan", "absorb.go", "debt of an absorbed shard stays", "few,shards,charge,slow",
			"\t\tother = keeps(found, of, now)\n", "\t\tother = keeps(found, of, now)\n\t\tother.Tokens = max(other.Tokens, 0)\n"),
		by("plan", "adjusted.go", "an adjustment raises the epoch", "few,adjust",
			"\tafter.Shard.Epoch++\n", ""),
		by("plan", "write.go", "tokens that come back raise the epoch", "few,leases,lost,tails",
			"return one != other || returned(was, is)", "return one != other"),
		by("plan", "shard.go", "a shard that lives is not made", "few,shards,lost,tails",
			`"attribute_not_exists(#0) OR attribute_exists(#1) AND #2<:0"`, `"attribute_not_exists(#0) OR attribute_exists(#1) OR #2<:0"`),
		by("lane", "lease_keep.go", "tokens of the centre are given back when the lease is over", "few,leases,large,pause,slow",
			"\t\tr.Admitted = false\n\t\tl.owe(r, back)\n", "\t\tr.Admitted = false\n\t\t_ = back\n"),
		by("lane", "lease_serve.go", "what the lease takes back the item does not get", "few,leases,refund,cascade,impatient",
			"sp.Give = h.holder.Refund(at, k, sp.Give)", "h.holder.Refund(at, k, sp.Give)"),
		by("lane", "ends.go", "a late admission whose write is refused is booked", "few,leases,impatient,far",
			"\t\tr.Request = r.Force()\n", "\t\tl.finish(r, nil)\n\t\treturn false\n"),
		by("lane", "lease_calls.go", "the leases are tested after the spend of a cascade", "few,leases,cascade,pause",
			"\tif alive {\n", "\tif alive || true {\n"),
		by("lane", "lease_serve.go", "the lease is tested after its spend", "few,leases,pause",
			"\t\tif !h.holder.Alive(l.host.clocks(l.host.cfg.Now())) {\n\t\t\treturn false, false", "\t\tif false {\n\t\t\treturn false, false"),
		by("lease", "watch.go", "a lease is freed after its term", "few,leases",
			"mono-s.since >= ReapAfter", "mono-s.since >= 1000"),
		by("lease", "candidate.go", "a lease ends with its era", "few,leases,freeze,long",
			"now.Era == c.sent.Era && ", ""),
		by("engine", "take.go", "each shard of a denied call gives back", "few,shards,large,slow",
			"\t\t\t\tc.engine.lanes.GiveBack(a.request)\n\t\t\t}\n\t\t}\n\t}\n}\n\n// booked", "\t\t\t\tc.engine.lanes.GiveBack(a.request)\n\t\t\t\tbreak\n\t\t\t}\n\t\t}\n\t}\n}\n\n// booked"),
		by("../../tokenbucket", "tokenbucket.go", "carried use stays when a limit is raised", "few,adopt,restless,slow",
			"use := from.Capacity + b.Carried - b.Tokens", "use := from.Capacity - b.Tokens"),
		by("engine", "shard_branch.go", "a charge over shards counts once", "few,shards,charge,large,refund",
			"\t\t\tsp.Usage = sp.Cost - sp.Give\n", ""),
	}
}

// timed says whether the runs require things to be done in time, as TestSimulate does. Without it
// a mutant is found by its effects, and not by its delays.
const timed = false

// The simulation of fleets finds rules that are taken away, each by runs with some features. The
// store as it is passes them.
//
//	make mutants RUN='TestSimulationFinds/a_lease_is_freed'
//
//nolint:tparallel // each run takes all processors
func TestSimulationFinds(t *testing.T) {
	t.Parallel()
	all := simulatedRules()
	t.Run("nothing without a mutant", func(t *testing.T) {
		binary := build(t, "fleetsim", "")
		var features []string
		for i := range all {
			if only := all[i].only; !slices.Contains(features, only) {
				features = append(features, only)
			}
		}
		for _, only := range features {
			if found, out := simulate(t, binary, only, 10); found != "" {
				t.Errorf("-only=%s: a violation at seed %s:\n%s", only, found, out)
			}
		}
	})
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			binary := build(t, "fleetsim", overlay(t, &m.mutant))
			seeds := m.seeds
			if seeds == 0 {
				seeds = usualSeeds
			}
			seed, out := simulate(t, binary, m.only, seeds)
			if seed == "" {
				t.Fatalf("-only=%s: %d runs find nothing", m.only, seeds)
			}
			t.Logf("-only=%s -seed=%s: %s", m.only, seed, out)
		})
	}
}

// simulate runs fleets until one has a violation. It returns its seed, "" = none has one, and its
// output.
func simulate(t *testing.T, binary, only string, seeds int) (seed, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^TestSimulate$", "-test.v", "-test.timeout", simulates.String(), fmt.Sprint("-seeds=", seeds), "-only="+only, "-first", "-times="+strconv.FormatBool(timed))
	cmd.Dir = folder("fleetsim")
	out, err := cmd.CombinedOutput()
	violation := regexp.MustCompile(`(?m)^after .*\n.*-seed=(\d+)`)
	if found := violation.FindSubmatch(out); found != nil {
		line, _, _ := strings.Cut(string(found[0]), "\n")
		return string(found[1]), line
	}
	if err != nil {
		t.Fatalf("-only=%s: the runs end without a violation: %v\n%s", only, err, out[:min(len(out), 2000)])
	}
	return "", ""
}
