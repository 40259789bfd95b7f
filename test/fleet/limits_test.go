package fleet_test

import (
	"context"
	"io"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// inTime is how soon a changed limit must be obeyed by every replica.
const inTime = 5 * time.Second

// obliged is how a change of an entity's limits shows.
type obliged struct {
	name          string
	before, after []limiter.Limit
	old           func(record) bool // decided under the limits before the change
	bound         limiter.Limit     // of the admissions afterwards
	holds         time.Duration     // since the change, when the bound holds
	least         int64             // admitted a second, from 5 s after the change; more than before where that was less
}

func obligations() []obliged {
	few, many, extra := limiter.PerSecond("rps", 5), limiter.PerSecond("rps", 100), limiter.PerSecond("extra", 5)
	return []obliged{
		{"lowered", []limiter.Limit{many}, []limiter.Limit{few}, func(r record) bool { return r.Under == 100 }, few, inTime, 1},
		{"raised", []limiter.Limit{few}, []limiter.Limit{many}, func(r record) bool { return r.Under == 5 }, many, 0, 8},
		{"added", []limiter.Limit{many}, []limiter.Limit{many, extra}, func(r record) bool { return r.Held&heldExtra == 0 }, extra, inTime, 1},
		{"removed", []limiter.Limit{many, extra}, []limiter.Limit{many}, func(r record) bool { return r.Held&heldExtra != 0 }, many, 0, 8},
	}
}

// Limits that are lowered, raised, added and removed by another process, in the
// middle of a burst, are obeyed by every replica in 5 s.
func TestChangedLimitsReachEveryReplica(t *testing.T) {
	f := newFleet(t, scenario{skews: make([]time.Duration, 3), patience: 5 * time.Minute})
	admin, err := dynamo.New(dynamotest.Start(t).Client(t), dynamo.Config{Table: f.table})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := admin.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	full, err := plenty()
	if err != nil {
		t.Fatal(err)
	}
	put := func(ref limiter.Ref, limits *limiter.Limits) {
		if err := admin.PutLimits(t.Context(), limiter.DefaultNamespace, ref, limiter.Record{Limits: limits}); err != nil {
			t.Fatal(err)
		}
	}
	put(limiter.EntityLimitsRef(obligedParent, obligedResource), full)
	for _, o := range obligations() {
		put(limiter.EntityLimitsRef(o.name, obligedResource), limitsOf(t, o.before))
	}
	changed := make([]int64, len(obligations()))
	f.oblige(t, "limits", func(e event) bool { return e.Decided >= 300 }, func() {
		for i, o := range obligations() {
			put(limiter.EntityLimitsRef(o.name, obligedResource), limitsOf(t, o.after))
			changed[i] = time.Now().UnixMicro()
		}
	}, inTime+3*time.Second)
	for i, o := range obligations() {
		f.checkObliged(t, uint16(i), o, changed[i])
	}
}

func limitsOf(t *testing.T, limits []limiter.Limit) *limiter.Limits {
	t.Helper()
	l, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// oblige starts the replicas, calls do when each has sent an event that waited
// accepts, and stops them a while later.
func (f *fleet) oblige(t *testing.T, work string, waited func(event) bool, do func(), rest time.Duration) {
	t.Helper()
	ready := make(chan struct{}, len(f.skews))
	once := make([]sync.Once, len(f.skews))
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- f.each(t.Context(), func(ctx context.Context, i int) error {
			return f.obligeOne(ctx, work, i, func(e event) {
				if waited(e) {
					once[i].Do(func() { ready <- struct{}{} })
				}
			}, stop)
		})
	}()
	for range f.skews {
		select {
		case <-ready:
		case err := <-ended:
			t.Fatalf("seed %d: the replicas ended: %v", f.seed, err)
		}
	}
	do()
	clocktest.Pause(t.Context(), rest)
	close(stop)
	if err := <-ended; err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
}

// obligeOne runs one replica until stop is closed.
func (f *fleet) obligeOne(ctx context.Context, work string, i int, hear func(event), stop <-chan struct{}) error {
	j := f.job(work, i, 0)
	j.Files = [][]int{{0}, {1}, {0, 1}}[i]
	p, err := startReplica(ctx, j)
	if err != nil {
		return err
	}
	go func(stdin io.Closer) { // ends with stop or the run
		select {
		case <-stop:
		case <-ctx.Done():
		}
		_ = stdin.Close() // fails when the replica has gone
	}(p.stdin)
	if _, _, err := p.follow(func(e event) bool {
		hear(e)
		return false
	}); err != nil {
		return err
	}
	h, err := readHistory(j.Replica, j.History)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.histories = append(f.histories, h)
	return nil
}

// checkObliged checks the outcome of one change.
func (f *fleet) checkObliged(t *testing.T, call uint16, o obliged, changed int64) {
	t.Helper()
	deadline := changed + inTime.Microseconds()
	var end, admissions int64
	for _, h := range f.histories {
		lag, before, after := int64(math.MinInt64), 0, 0
		for _, r := range h.records {
			if r.Call != call || r.Outcome == unavailable {
				continue
			}
			end = max(end, r.to())
			if o.old(r) {
				lag = max(lag, r.From-changed)
				before++
			} else {
				after++
			}
			if r.From >= deadline && r.Outcome == admitted {
				admissions++
			}
		}
		t.Logf("%s, replica %s: %d decisions under the old limits, the last %v after the change, %d under the new", o.name, h.replica, before, time.Duration(lag)*time.Microsecond, after)
		if before == 0 || after == 0 || time.Duration(lag)*time.Microsecond > inTime {
			t.Errorf("seed %d: %s, replica %s: the last of %d decisions under the old limits came %v after the change, want at most %v, and then others; there are %d",
				f.seed, o.name, h.replica, before, time.Duration(lag)*time.Microsecond, inTime, after)
		}
	}
	if least := o.least * (end - deadline) / 1_000_000; admissions < least {
		t.Errorf("seed %d: %s: %d admitted from 5 s after the change, want at least %d", f.seed, o.name, admissions, least)
	}
	all := f.obligedTakings(changed, func(r record) bool { return r.Call == call && r.From >= changed })
	found, err := windows.Check(o.bound.Params(), all, f.late(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: the last window beyond %v begins %.3f s after the change", o.name, o.bound, float64(found.Last.From)/1e6)
	if found.Broken && found.Last.From >= o.holds.Microseconds() {
		t.Errorf("seed %d: %s to %v, in seconds since: %v; the calls in it:\n%s", f.seed, o.name, o.bound, found.Last, callsIn(all, found.Last))
	}
}

// obligedTakings returns the admissions that fit, in microseconds since start.
func (f *fleet) obligedTakings(start int64, fits func(record) bool) []windows.Taking {
	var all []windows.Taking
	for _, h := range f.histories {
		for _, r := range h.records {
			if r.Outcome == admitted && fits(r) {
				all = append(all, windows.Taking{From: r.From - start, To: r.to() - start, Amount: r.Amount * token, Replica: h.replica})
			}
		}
	}
	return all
}

// Replicas whose configuration files disagree, and which put them in force again and
// again, mint nothing: not by a number that goes up and down, and not by a limit that
// comes and goes.
func TestFilesThatDisagreeMintNothing(t *testing.T) {
	f := newFleet(t, scenario{skews: make([]time.Duration, 3), patience: 5 * time.Minute})
	f.oblige(t, "files", func(e event) bool { return e.Turns >= 12 }, func() {}, 0)
	extra := limiter.Custom("extra", 50, 1, time.Second)
	for _, tt := range []struct {
		name  string
		call  uint16
		bound tokenbucket.Params
		held  uint8
	}{
		{"a number", 0, limiter.PerSecond("rps", 40).Params(), heldRPS},
		{"a limit", 2, extra.Params(), heldExtra},
	} {
		all := f.obligedTakings(f.start.UnixMicro(), func(r record) bool { return r.Call == tt.call && r.Held&tt.held != 0 })
		found, err := windows.Check(tt.bound, all, f.late(false))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d admitted, at most: %v", tt.name, len(all), found.Tightest)
		if found.Broken || len(all) == 0 {
			t.Errorf("seed %d: %s, %d admitted: %v; the calls in it:\n%s", f.seed, tt.name, len(all), found.Tightest, callsIn(all, found.Tightest))
		}
	}
}
