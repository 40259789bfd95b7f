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
func by(pkg, file, name, only string, lines int, without string) simulated {
	return simulated{mutant: mutant{pkg: pkg, file: file, name: name, lines: lines, without: without}, only: only}
}

// simulatedRules are the rules of the protocol whose absence the simulation finds.
func simulatedRules() []simulated {
	return []simulated{
		by("plan", "absorb.go", "debt of a shard that is absorbed stays", "few,shards,charge,slow",
			1, "other = keeps(found, of, now)\nother.Tokens = max(other.Tokens, 0)"),
		by("plan", "adjusted.go", "an adjustment raises the epoch", "few,adjust",
			1, ""),
		by("plan", "form.go", "a limit with an extra is written exactly", "few,adjust,slow",
			3, ""),
		by("plan", "write.go", "tokens that come back raise the epoch", "few,leases,lost,tails",
			1, "return one != other"),
		by("plan", "shard.go", "a living shard is not replaced", "few,shards,lost,tails",
			2, "to.RequirePresent(schema.AttrRetired)"),
		by("lane", "exchange.go", "a write that was planned on one under way is answered with the item", "few,brief,slow,refund,restless,throttle,tails,lost",
			1, "if cfg.Scripts {"),
		by("lane", "lease_keep.go", "the centre's part of a large request goes back", "few,leases,large,pause,slow",
			1, "_ = back"),
		by("lane", "lease_serve.go", "a give-back goes to one place", "few,leases,refund,cascade,impatient",
			1, "h.holder.Refund(at, k, sp.Give)"),
		by("lane", "ends.go", "a late admission is booked after a refusal", "few,leases,impatient,far",
			1, "l.finish(r, nil)\nreturn false"),
		by("lane", "lease_calls.go", "the leases of a cascade are alive after the spend", "few,leases,cascade,pause",
			1, "if alive || true {"),
		by("lane", "lease_serve.go", "a lease is alive after its spend", "few,leases,pause",
			1, "if false {"),
		by("lease", "watch.go", "a lease is freed after its term", "few,leases",
			1, "if mono-s.since >= 1000 && (!ok || id < replica) {"),
		by("lease", "candidate.go", "a lease ends by the monotonic clock", "few,leases,freeze,long,cascade",
			1, "return now.Mono-c.sent.Mono < Term && now.Wall-c.sent.Wall < Term"),
		by("engine", "take.go", "each shard of a denied call gets its part back", "few,shards,large,slow",
			1, "c.engine.lanes.GiveBack(a.request)\nbreak"),
		by("../../tokenbucket", "tokenbucket.go", "a raise does not add carried use", "few,adopt,restless,slow",
			1, "use := from.Capacity - b.Tokens"),
		by("engine", "shard_branch.go", "parts of a charge count its usage once", "few,shards,charge,large,refund",
			1, ""),
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
