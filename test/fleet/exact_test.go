package fleet_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// Processes decide on a few buckets while calls are lost, late and refused, and while
// processes are killed. Their clocks are an hour slow, an hour fast and 400 ms fast,
// and one is right. No window of any limit has too many admissions.
func TestNeverOverAdmit(t *testing.T) {
	f := newFleet(t, scenario{
		load: "fleet", skews: []time.Duration{0, -time.Hour, time.Hour, 400 * time.Millisecond},
		decisions: exactDecisions, kills: exactKills, faults: allFaults(), patience: exactPatience,
	})
	if err := f.run(t.Context()); err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	f.report(t)
	faults, near := f.check(t)
	for _, fault := range faults {
		t.Errorf("seed %d: %s", f.seed, fault)
	}
	if near < 3 {
		t.Errorf("%d limits came near their bound, want 3 at least: the run shows little", near)
	}
	f.faults.require(t, f.proxy)
	if want := exactKills * (len(f.skews) - 1); f.killed != want {
		t.Errorf("%d replicas were killed, want %d", f.killed, want)
	}
	if got := int64(count(f.histories, admitted, denied)); got < f.decisions/int64(len(f.skews))*int64(len(f.skews)) {
		t.Errorf("%d decisions are recorded, want %d", got, f.decisions)
	}
	if count(f.histories, denied) == 0 || f.reads == 0 {
		t.Error("no call was denied, or none read limits: the run shows nothing")
	}
}

// report logs the counts of a run.
func (f *fleet) report(t *testing.T) {
	t.Helper()
	t.Logf("%d admitted, %d denied, %d unavailable, %d uncertain in %v", count(f.histories, admitted), count(f.histories, denied),
		count(f.histories, unavailable), count(f.histories, uncertain), f.took.Round(time.Millisecond))
	t.Logf("%d batches of limits read, %d replicas killed, clocks %v apart; the others: %+v", f.reads, f.killed, f.disagreement(), f.stats)
	t.Logf("faults: %v", f.proxy.Faults())
}

// disagreement is how far apart the replicas' clocks were, at the most.
func (f *fleet) disagreement() time.Duration {
	slow, fast := int64(math.MaxInt64), int64(math.MinInt64)
	for _, h := range f.histories {
		for _, r := range h.records {
			slow, fast = min(slow, r.Slow), max(fast, r.Fast)
		}
	}
	return time.Duration(max(fast-slow, 0)) * time.Microsecond
}

// giveBackPatience is how long the store tries to roll a take back. The last write is
// sent within the budget from then, and applied when the proxy lets it pass.
const giveBackPatience = time.Minute

// late is the span of refill that a bucket may give beyond its bound: as much as the
// clocks disagree, and the millisecond that times are cut to.
//
// A bucket whose takes are rolled back when another denies has more. A denied call
// holds tokens for at most H, and the bucket refills meanwhile. H before the start of
// a window none of the tokens now held were held. So the bucket and these tokens had
// at most its capacity together, and have at most H's refill more.
func (f *fleet) late(shared bool) time.Duration {
	late := f.disagreement() + time.Millisecond
	if !shared {
		return late
	}
	var longest int64
	for _, h := range f.histories {
		for _, r := range h.records {
			if r.Outcome != admitted && len(f.asked.calls[r.Call].takes) > 1 {
				longest = max(longest, r.Took)
			}
		}
	}
	return late + time.Duration(longest)*time.Microsecond + giveBackPatience + budget + mostLate
}

// check returns the faults of the histories. near is how many limits have a window
// with 85 % of its possible admissions. Calls of an uncertain outcome are not in it, so
// that a slow machine does not come nearer.
func (f *fleet) check(t *testing.T) (faults []string, near int) {
	t.Helper()
	start := f.start.UnixMicro()
	for i := range f.asked.buckets {
		b := &f.asked.buckets[i]
		for j := range b.limits.Len() {
			limit := b.limits.At(j)
			all := f.asked.takings(f.histories, start, i, limit.Name)
			found, err := windows.Check(limit.Params(), all, f.late(b.shared))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s %v, %d admitted, at most: %v", b.key.Entity, limit.Name, limit, len(all), found.Tightest)
			if w := found.Tightest; w.Taken >= w.Admitted/100*85 {
				near++
			}
			if found.Broken {
				faults = append(faults, fmt.Sprintf("bucket %s, limit %s %v: %v; the calls in it:\n%s", b.key.Entity, limit.Name, limit, found.Tightest, callsIn(all, found.Tightest)))
			}
		}
	}
	return faults, near
}

// callsIn describes the calls of a window, the first hundred.
func callsIn(all []windows.Taking, w windows.Window) string {
	var b strings.Builder
	n := 0
	for _, t := range all {
		if t.From < w.From || t.To > w.To {
			continue
		}
		n++
		if n <= 100 {
			fmt.Fprintf(&b, "  replica %s from %.6f s to %.6f s: %d\n", t.Replica, float64(t.From)/1e6, float64(t.To)/1e6, t.Amount)
		}
	}
	if n > 100 {
		fmt.Fprintf(&b, "  and %d more\n", n-100)
	}
	return b.String()
}
