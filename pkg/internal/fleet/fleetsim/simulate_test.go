//go:build !race

// A run with one goroutine at a time has no races, and the race detector makes it ten times as
// slow.

package fleetsim_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	manySeeds = flag.Int64("seeds", 0, "TestSimulate: run the fleets of so many seeds, and print how far it is")
	fromSeed  = flag.Int64("from", 0, "TestSimulate: the first seed")
	only      = flag.String("only", "", "TestSimulate: the features that runs have, and no others, such as leases,lost")
	firstOnly = flag.Bool("first", false, "TestSimulate: with -seeds, end at the first violation")
	without   = flag.String("without", "", "TestSimulate: features that no run has")
)

// total sums up runs.
type total struct {
	mu        sync.Mutex
	runs      int
	decisions int
	seen      map[string]int
	failed    []string
}

// command returns how a run happens again.
func command(seed int64) string {
	args := fmt.Sprintf("-seed=%d", seed)
	if *only != "" {
		args += " -only=" + *only
	}
	if *without != "" {
		args += " -without=" + *without
	}
	return "go test ./pkg/internal/fleet/fleetsim -run 'TestSimulate$' -v " + args
}

func (sum *total) add(seed int64, f *fleet, err error) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.runs++
	sum.decisions += f.decisions()
	for what, n := range f.seen {
		sum.seen[what] += n
	}
	sum.seen["admitted"] += f.admitted
	sum.seen["denied"] += f.denied
	sum.seen["decided late"] += f.late
	sum.seen["decided by the policy"] += f.policy
	sum.seen["write"] += f.writes
	if err == nil {
		return
	}
	failure := fmt.Sprintf("%v; it happens again with:\n  %s", err, command(seed))
	sum.failed = append(sum.failed, failure)
	if *manySeeds > 0 {
		fmt.Fprintln(os.Stderr, failure)
	}
}

// violated reports whether a run had a violation.
func (sum *total) violated() bool {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	return len(sum.failed) > 0
}

func (f *fleet) decisions() int { return f.admitted + f.denied + f.late + f.policy }

func (sum *total) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d decisions, %d violations", sum.runs, sum.decisions, len(sum.failed))
	for _, what := range slices.Sorted(maps.Keys(sum.seen)) {
		fmt.Fprintf(&b, "\n  %-40s %d", what, sum.seen[what])
	}
	return b.String()
}

// TestSimulate runs fleets of many seeds. A failing one is printed with the command
// that runs it alone.
func TestSimulate(t *testing.T) {
	if *oneSeed >= 0 {
		f := newFleet(t, uint64(*oneSeed), *only, *without, sabotage{}) // #nosec G115 -- not below 0
		t.Logf("seed %d: %s", *oneSeed, f.on.String())
		if err := f.run(); err != nil {
			t.Error(err)
		}
		t.Logf("%d decisions, %d writes, %v", f.decisions(), f.writes, f.seen)
		return
	}
	seeds := *manySeeds
	switch {
	case seeds == 0 && testing.Short():
		seeds = 4
	case seeds == 0:
		seeds = 16
	}
	sum := &total{seen: make(map[string]int)}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1) - 1; seed < seeds && (!*firstOnly || !sum.violated()); seed = next.Add(1) - 1 {
				f := newFleet(t, uint64(*fromSeed+seed), *only, *without, sabotage{}) // #nosec G115 -- not below 0
				sum.add(*fromSeed+seed, f, f.run())
			}
		})
	}
	done := make(chan struct{})
	go func() { // ends with the workers
		workers.Wait()
		close(done)
	}()
	sum.watch(done)
	t.Log(sum)
	for _, failure := range sum.failed {
		t.Error(failure)
	}
}

// watch prints how far it is, when that takes long, until done is closed.
func (sum *total) watch(done <-chan struct{}) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if *manySeeds > 0 {
				sum.mu.Lock()
				fmt.Fprintf(os.Stderr, "%d of %d runs, %d decisions, %d violations\n", sum.runs, *manySeeds, sum.decisions, len(sum.failed))
				sum.mu.Unlock()
			}
		}
	}
}

// The same seed makes the same history, under any load of the machine.
func TestSimulateIsDeterministic(t *testing.T) {
	for seed := range uint64(3) {
		var digests [2]uint64
		for i := range digests {
			f := newFleet(t, seed, "few,leases,lost,cascade,crash,adopt,rollout,adjust,settle", "", sabotage{})
			if err := f.run(); err != nil {
				t.Logf("seed %d: %v", seed, err) // TestSimulate is for that
			}
			digests[i] = f.digest
		}
		if digests[0] != digests[1] {
			t.Errorf("seed %d: two histories, with the digests %x and %x", seed, digests[0], digests[1])
		}
	}
}
