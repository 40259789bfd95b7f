package fleet_test

import (
	"testing"
	"time"
)

func TestExact(t *testing.T) {
	f := newFleet(t, scenario{load: "fleet", skews: make([]time.Duration, 4), decisions: 300_000, kills: 1, faults: true, patience: 4 * time.Minute})
	start := time.Now()
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v %+v %v %v %v %v %v %v %v", time.Since(start), f.stats, count(f.histories, admitted), count(f.histories, denied), count(f.histories, unavailable), count(f.histories, uncertain), f.killed, f.reads, f.proxy.Faults())
	l, _ := loadOf(f.load)
	for o := range outcome(4) {
		n, took := make([]int64, len(l.calls)), make([]int64, len(l.calls))
		for _, h := range f.histories {
			for _, r := range h.records {
				if r.Outcome == o {
					n[r.Call]++
					took[r.Call] += r.Took
				}
			}
		}
		for i := range n {
			t.Log(o, i, n[i], took[i]/max(n[i], 1)/1000)
		}
	}
	for b := range l.buckets {
		for i := range l.buckets[b].limits.Len() {
			lim := l.buckets[b].limits.At(i)
			all := l.takings(f.histories, f.start.UnixMicro(), b, lim.Name)
			w, err := checkWindows(lim.Params(), all, time.Millisecond)
			t.Log(l.buckets[b].key.Entity, lim, len(all), w, w.tightest.excess(), err)
		}
	}
}
