package cli

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A quantile is one of the durations, or at most an eighth more.
func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 100).Draw(t, "durations")
		var all, half loadHistogram
		for i, d := range durations {
			if i%2 == 0 {
				all.Add(time.Duration(d))
			} else {
				half.Add(time.Duration(d))
			}
		}
		all.Merge(&half)
		slices.Sort(durations)
		for _, q := range []int64{0, 500, 900, 990, 1000} {
			rank := max((int64(len(durations))*q+999)/1000, 1)
			exact := time.Duration(durations[rank-1])
			if got := all.Quantile(q); got < exact || got > exact+exact/8 {
				t.Fatalf("quantile %d is %v, want %v", q, got, exact)
			}
		}
		if all.Count() != int64(len(durations)) || all.Max() != time.Duration(durations[len(durations)-1]) {
			t.Fatalf("%d, at most %v", all.Count(), all.Max())
		}
	})
	var none loadHistogram
	if none.Quantile(500) != 0 || none.Chart() != "" {
		t.Errorf("an empty histogram: %v, %q", none.Quantile(500), none.Chart())
	}
}

func TestChart(t *testing.T) {
	var h loadHistogram
	for range 100 {
		h.Add(time.Millisecond)
	}
	h.Add(6 * time.Millisecond)
	h.Add(-time.Second)
	lines := strings.Split(strings.TrimSuffix(h.Chart(), "\n"), "\n")
	if !strings.HasSuffix(lines[len(lines)-1], "█                                        1") || !strings.Contains(h.Chart(), strings.Repeat("█", 40)+" 100") {
		t.Errorf("\n%s", h.Chart())
	}
}

// A closed loop keeps all workers busy until the time is over.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runLoad(t.Context(), loadConfig{Workers: 4, For: time.Second, Call: func(context.Context, int, int) string {
			time.Sleep(10 * time.Millisecond)
			return "OK"
		}})
		if n := r.Latency.Count(); n < 4*98 || n > 4*100 || r.Codes["OK"] != n || r.Elapsed > 1100*time.Millisecond || r.Behind != 0 {
			t.Errorf("got %d answers in %v, %v", n, r.Elapsed, r.Codes)
		}
	})
}

// A load that nothing answers is over after a second, without a busy loop. One that had an answer goes on.
func TestSilence(t *testing.T) {
	for answers, want := range map[int64]time.Duration{0: time.Second, 1: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := runLoad(t.Context(), loadConfig{Workers: 4, For: 5 * time.Second, Silence: "Unavailable", Call: func(context.Context, int, int) string {
				if calls.Add(1) <= answers {
					return "OK"
				}
				return "Unavailable"
			}})
			if n := r.Latency.Count(); r.Elapsed < want || r.Elapsed > want+2*silencePause || n > 4*int64(r.Elapsed/silencePause+2) {
				t.Errorf("after %d answers: %d results in %v, want %v", answers, n, r.Elapsed, want)
			}
		})
	}
}

// A rate is held, keys are within range, and requests that had to wait count from when they
// were due.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		keys := make(map[int]int)
		progress := 0
		r := runLoad(t.Context(), loadConfig{
			Workers: 10, Rate: 100, Requests: 300, Keys: 5, Zipf: true,
			Progress: func(int64, time.Duration) { progress++ },
			Call: func(_ context.Context, _, key int) string {
				mu.Lock()
				defer mu.Unlock()
				keys[key]++
				return "OK"
			},
		})
		if r.Latency.Count() != 300 || r.Elapsed < 2980*time.Millisecond || r.Elapsed > 3010*time.Millisecond || r.Behind != 0 {
			t.Errorf("%d answers in %v, %d behind", r.Latency.Count(), r.Elapsed, r.Behind)
		}
		if keys[0] <= keys[4] || len(keys) > 5 || progress < 2 {
			t.Errorf("keys %v, %d times progress", keys, progress)
		}
		slow := runLoad(t.Context(), loadConfig{Workers: 1, Rate: 100, For: time.Second, Call: func(context.Context, int, int) string {
			time.Sleep(100 * time.Millisecond)
			return "OK"
		}})
		if slow.Latency.Quantile(900) < 700*time.Millisecond || slow.Behind < 80 {
			t.Errorf("of a slow service: p90 %v, %d behind", slow.Latency.Quantile(900), slow.Behind)
		}
	})
}

// An interrupt ends the load, and the measurements so far are returned.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		r := runLoad(ctx, loadConfig{Workers: 2, For: time.Hour, Call: func(context.Context, int, int) string {
			time.Sleep(100 * time.Millisecond)
			return "OVER_LIMIT"
		}})
		if n := r.Codes["OVER_LIMIT"]; n < 8 || n > 10 {
			t.Errorf("got %v", r.Codes)
		}
	})
}

// A call that ends after the load is over is not counted, also while the context still lives.
func TestCallsAfterTheEnd(t *testing.T) {
	t.Parallel()
	got := runLoad(t.Context(), loadConfig{Workers: 4, For: 20 * time.Millisecond, Call: func(ctx context.Context, _, _ int) string {
		deadline, _ := ctx.Deadline()
		if time.Until(deadline) > 5*time.Millisecond {
			return "in time"
		}
		for time.Now().Before(deadline) { // a timer would be as late as that of the context
			runtime.Gosched()
		}
		return "late"
	}})
	if got.Codes["late"] > 0 || got.Codes["in time"] == 0 {
		t.Errorf("got %v", got.Codes)
	}
}
