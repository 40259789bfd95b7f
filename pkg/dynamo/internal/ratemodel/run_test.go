package ratemodel

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var (
	oneSeed  = flag.Int64("seed", -1, "TestModel: print the run of this seed only")
	oneGuard = flag.String("guard", "", "TestModel: the guard that the run of -seed does without")
	manyRuns = flag.Uint64("runs", 0, "TestModel: so many runs, and print how far it is")
	fromSeed = flag.Uint64("from", 0, "TestModel: the first seed of -runs")
)

// fewRuns is the number that make test has time for, also with the race detector.
const fewRuns = 2000

// TestModel runs the whole form: no seed has a violation.
func TestModel(t *testing.T) {
	if *oneSeed >= 0 {
		r := Run(uint64(*oneSeed), Guard(*oneGuard), true)
		t.Logf("%s\nviolation: %q", strings.Join(r.Trace, "\n"), r.Violation)
		return
	}
	runs := max(*manyRuns, fewRuns)
	var sum Stats
	begun := time.Now()
	for n := range runs {
		seed := *fromSeed + n
		r := Run(seed, Whole, false)
		if r.Violation != "" {
			t.Fatalf("seed %d: %s; go test -run '^TestModel$' -v ./pkg/dynamo/internal/ratemodel -seed %d prints the run", seed, r.Violation, seed)
		}
		sum.add(r.Stats)
		if *manyRuns > 0 && (n+1)%10_000 == 0 {
			fmt.Printf("%d of %d runs, no violation, %v; %+v\n", n+1, runs, time.Since(begun).Round(time.Second), sum)
		}
	}
	if sum.Local < int(runs) || sum.Takes < int(runs) || sum.Reaps < int(runs)/10 || sum.Large < int(runs)/10 ||
		sum.Reshaped < int(runs)/10 || sum.Doubled == 0 || sum.Late < int(runs)/10 || sum.Cascades < int(runs)/10 {
		t.Errorf("%d runs did too little to show anything: %+v", runs, sum)
	}
}

func (s *Stats) add(o Stats) {
	s.Local += o.Local
	s.Takes += o.Takes
	s.Large += o.Large
	s.Leases += o.Leases
	s.Reaps += o.Reaps
	s.Reshaped += o.Reshaped
	s.Doubled += o.Doubled
	s.Late += o.Late
	s.Unsure += o.Unsure
	s.Cascades += o.Cascades
}

// guardSeeds is within how many seeds a removed guard is found.
const guardSeeds = 300

// rareFrom is where the search for a rare violation begins, so that it takes no
// minutes. When the draws of a schedule change, it is to be measured anew.
func rareFrom(g Guard) uint64 {
	return map[Guard]uint64{
		PaidSlot:     1300,
		PaidHere:     110_700,
		EpochTokens:  64_900,
		ExactEpoch:   1600,
		MonotonicEnd: 700,
		WallEnd:      300,
		TermFromSend: 300,
		ChildOnce:    1200,
		AbsorbOnce:   2100,
	}[g]
}

// TestEachGuardIsNeeded removes one guard at a time: the oracles notice each.
func TestEachGuardIsNeeded(t *testing.T) {
	for _, g := range Guards() {
		t.Run(string(g), func(t *testing.T) {
			for n := range uint64(guardSeeds) {
				r := Run(rareFrom(g)+n, g, false)
				if r.Violation != "" {
					t.Logf("seed %d: %s", rareFrom(g)+n, r.Violation)
					return
				}
			}
			t.Errorf("no violation in %d runs without this guard", guardSeeds)
		})
	}
}

// TestARunIsItsSeed runs a seed twice.
func TestARunIsItsSeed(t *testing.T) {
	for seed := range uint64(16) {
		a, b := Run(seed, Whole, true), Run(seed, Whole, true)
		if got, want := strings.Join(b.Trace, "\n"), strings.Join(a.Trace, "\n"); got != want {
			t.Errorf("seed %d ran differently the second time", seed)
		}
	}
}

// TestDocsNameEachGuard holds the table of docs/design/leases.md against the guards: its first
// column names each guard.
func TestDocsNameEachGuard(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/design/leases.md")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, " | "); len(cells) == 2 {
			for name := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
				named[name] = true
			}
		}
	}
	for _, g := range Guards() {
		if !named[string(g)] {
			t.Errorf("docs/design/leases.md has no row for the guard %q", g)
		}
	}
}
