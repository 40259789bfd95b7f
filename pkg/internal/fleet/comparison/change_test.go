package comparison_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/comparison"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// changing is something that is done to a bucket of three replicas under load, and how
// long it may take.
type changing struct {
	name, text string
	sc         scenario
	do         func(*change)
	raised     int64         // tokens that the capacity is raised by; 0 = the limits stay
	force      time.Duration // new limits are in force within it; 0 = soon
	splits     bool          // the bucket is split
	kills      bool          // a replica is killed, so that its lease is lost
	modes      []string      // none = both
}

// change is a run of a changing.
type change struct {
	*run
	*changing

	t      *testing.T
	mode   string
	trip   time.Duration // the longest round trip
	at     time.Time     // when it was done
	took   time.Duration // of a reset, or a stop
	reset  time.Time     // when it was committed
	full   int64         // millitokens, after it
	gone   []bool        // replicas that get no calls
	lapsed atomic.Int64  // leases that ended without a return
}

const (
	changeBegins = 3 * time.Second
	changeLasts  = 5 * time.Second         // observed after it
	reapTime     = 5600 * time.Millisecond // until a lease of a crashed replica is freed
)

// latencies are those of messages of changes: to twice as long, at random.
func latencies() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{ms, 2 * ms, 3 * ms, 5 * ms, 20 * ms}
}

func changings() []changing {
	twice := func(capacity, rate int64, period time.Duration, calls float64) scenario {
		sc := scenario{replicas: 3, limit: limiter.Custom("l", capacity, rate, period)}
		sc.short = lasting(calls, changeBegins+changeLasts)
		return sc
	}
	usual := twice(1000, 1000, time.Second, 2000)
	half := twice(1000, 1000, time.Second, 500)
	split := usual
	split.units = 300
	day := twice(9000, 9000, 24*time.Hour, 2000)
	day.short = lasting(2000, 15*time.Second)
	all := func(c *change) {
		for i := range c.replicas() {
			c.raise(i)
		}
	}
	rollout := func(c *change) {
		for i := range c.replicas() {
			c.raise(i)
			time.Sleep(700 * time.Millisecond)
		}
	}
	return []changing{
		{name: "nothing", text: "no change", sc: usual, do: func(*change) {}},
		{name: "nothing-half", text: "the same", sc: half, do: func(*change) {}},
		{name: "raise", text: "all replicas get a raised limit at once", sc: usual, do: all, raised: 200},
		{name: "raise-half", text: "the same", sc: half, do: all, raised: 200},
		{name: "rollout", text: "one replica after the other gets it, each 0.7 s later", sc: usual, do: rollout, raised: 200},
		{name: "one", text: "one replica of three gets it", sc: usual, do: func(c *change) { c.raise(0) }, raised: 200},
		{name: "reset", text: "the bucket is reset", sc: usual, do: (*change).resets},
		{name: "reset-half", text: "the same", sc: half, do: (*change).resets},
		{name: "stop", text: "one replica is stopped in order", sc: usual, do: (*change).stops},
		{name: "raise-stop", text: "two replicas get a raised limit while the third is stopped in order", sc: usual, raised: 200, do: func(c *change) {
			c.raise(0)
			c.raise(1)
			c.stops()
		}},
		{
			name: "killed", text: "one replica is killed, and the others get another limit of a day that is used up", sc: day, raised: 20, kills: true, force: reapTime + time.Second,
			do: func(c *change) {
				c.kill()
				time.Sleep(2 * time.Second)
				c.at = time.Now()
				c.raise(0)
				c.raise(1)
			},
		},
		{name: "split", text: "a bucket at 700 writes a second is split, of which an item is good for 300", sc: split, do: func(*change) {}, splits: true, modes: []string{modeGroupCommit}},
		{name: "split-raise", text: "the same, and its limit is raised", sc: split, do: all, raised: 200, splits: true, modes: []string{modeGroupCommit}},
	}
}

func (c *change) replicas() int { return len(c.members) }

// raise has a replica read the raised limit, as a file has it that was changed.
func (c *change) raise(i int) {
	c.t.Helper()
	l := c.sc.limit
	l.Capacity += c.raised
	if err := c.members[i].limiter.SetStatic(c.t.Context(), staticOf(c.t, &c.sc, l)); err != nil {
		c.t.Fatal(err)
	}
}

// resets resets the bucket through the first replica.
func (c *change) resets() {
	out, err := c.members[0].store.AdjustBucket(c.t.Context(), c.at, limiter.Adjustment{Bucket: c.bucket(), Kind: limiter.AdjustReset})
	if err != nil || !out.Found {
		c.t.Errorf("a reset: %+v, %v", out, err)
		return
	}
	c.reset = time.Now()
	c.took, c.full = c.reset.Sub(c.at), out.After.Limits[0].Tokens
}

func (c *change) bucket() limiter.BucketKey {
	return limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: keyName(0), Resource: resource}
}

// stops stops the last replica cleanly. Its calls come to the others.
func (c *change) stops() {
	last := c.replicas() - 1
	c.leave(last)
	if err := c.members[last].stop(c.t.Context()); err != nil {
		c.t.Error(err)
	}
	c.took = time.Since(c.at)
}

// kill has the last replica end without a word.
func (c *change) kill() {
	last := c.replicas() - 1
	c.leave(last)
	c.networks[last].cut(true)
}

func (c *change) leave(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone[i] = true
}

// some draws a replica that is there.
func (c *change) some(rnd *rand.Rand) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if i := rnd.IntN(len(c.gone)); !c.gone[i] {
			return i
		}
	}
}

// changed is the result of a change.
type changed struct {
	comparison.Change

	kinds  map[string]time.Duration // the slowest exact write of each kind
	faults []string                 // of one run
	beyond []string                 // the bounds that the run is beyond, of those of the median
}

// fault adds a fault that no run may have.
func (r *changed) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// exceed adds a bound that the median may not be beyond.
func (r *changed) exceed(format string, args ...any) {
	r.beyond = append(r.beyond, fmt.Sprintf(format, args...))
}

// lapses counts the leases that end without a return.
type lapses struct {
	slog.Handler
	n *atomic.Int64
}

func (h lapses) Enabled(context.Context, slog.Level) bool { return true }

func (h lapses) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "a lease ended before it was returned") {
		h.n.Add(1)
	}
	return nil
}

// observe runs a change.
func observe(t *testing.T, ch *changing, mode string, latency time.Duration) (result changed) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sc := ch.sc
		c := &change{changing: ch, t: t, mode: mode, trip: 2 * latency, gone: make([]bool, sc.replicas)}
		sc.logger = slog.New(lapses{slog.DiscardHandler, &c.lapsed})
		c.run = &run{scenario: &sc, fleet: newFleet(t, &sc, mode), load: sc.short, mode: mode, to: c.some}
		ex := newExacts()
		for i, n := range c.networks {
			n.least, n.exacts, n.index = latency, ex, i
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(changeBegins)
			c.at = time.Now()
			ch.do(c)
		}()
		c.bear(t.Context())
		<-done
		result = c.result(ex)
	})
	return result
}

// result closes the replicas, and returns the result of the change.
func (c *change) result(ex *exacts) changed {
	r := changed{Change: comparison.Change{Scenario: c.name, Mode: c.mode, Latency: c.trip / 2, Took: c.took}}
	ended := time.Now()
	if c.kills {
		c.networks[c.replicas()-1].cut(false) // so that its end is in order; nothing of it counts
	}
	c.close(c.t)
	r.Ended, r.kinds = c.lapsed.Load(), ex.ends()
	var forced time.Time
	if c.raised > 0 {
		if d, err := first(ex.changed, c.at); err != nil {
			r.Force = ended.Sub(c.at)
			r.exceed("the raised limit is never in force, in %v", r.Force)
		} else {
			r.Force, forced = d, c.at.Add(d)
			if most := max(c.force, c.soon()); d > most {
				r.exceed("the raised limit is in force after %v, want %v", d, most)
			}
		}
	}
	if c.splits && !c.far() && len(ex.split) == 0 { // in a far store it has too few writes
		r.exceed("the bucket is never split")
	}
	if most := c.soon(); c.took > most {
		r.exceed("a reset or a stop took %v, want %v", c.took, most)
	}
	for kind, took := range r.kinds {
		r.Exact = max(r.Exact, took)
		if most := c.soon(); took > most && !c.kills {
			r.exceed("an exact write took %v, want %v: %s", took, most, kind)
		}
	}
	c.count(&r)
	if !c.kills {
		r.Missing = c.lacks(forced)
		if most := c.refill(startLoss + 3*c.trip); -r.Missing > most {
			r.fault("%d millitokens are too many, want %d at most", -r.Missing, most)
		} else if r.Missing > most {
			r.exceed("%d millitokens are missing, want %d at most", r.Missing, most)
		}
		if r.Ended > 0 {
			r.fault("%d leases of living replicas ended without a return", r.Ended)
		}
	}
	return r
}

// count counts the calls after the change.
func (c *change) count(r *changed) {
	var calls, late, tokens int64
	at := c.at.Sub(c.began)
	for i := range c.calls {
		call := &c.calls[i]
		if call.err != nil {
			r.fault("a call failed: %v", call.err)
		}
		if call.policy {
			r.fault("a call was decided by policy")
		}
		if call.from < at {
			continue
		}
		calls++
		if call.late {
			late++
		}
		if call.admitted {
			tokens += call.amount
		}
	}
	r.Late = float64(late) / float64(max(calls, 1))
	if most := c.lateMost(); r.Late > most {
		r.exceed("%.1f %% of the calls after the change are late, want %.1f %%", 100*r.Late, 100*most)
	}
	// When demand is above the limit, the refill and the tokens of the change are
	// admitted.
	wants := c.refill(c.load.lasts()-at) + c.raised*limiter.Milli
	if !c.reset.IsZero() {
		wants += c.limit.Params().Capacity
	}
	r.Share = float64(tokens) / float64(min(wants, calls*limiter.Milli))
	least := 0.98
	if c.far() {
		least = 0.95
	}
	if r.Share < least && !c.kills {
		r.exceed("%.3f of the ideal is admitted after the change, want %.2f", r.Share, least)
	}
}

// refill returns how many millitokens of the limit refill in a time.
func (c *change) refill(d time.Duration) int64 {
	p := c.limit.Params()
	return int64(float64(p.Amount) / float64(p.Period) * d.Seconds() * 1000)
}

// startLoss is how much refill is lost at the start, besides that of three round trips.
// Then one part of a bucket is full and another one serves.
const startLoss = 60 * time.Millisecond

// far reports whether a round trip is longer than a call waits: calls that the item decides
// are late.
func (c *change) far() bool { return c.trip > limiter.DefaultTimeout }

// lateMost returns the part of the calls after the change that may be late. The target is 1 %. Where two
// round trips are longer than a call waits, and in far stores, others may be late too: calls that come
// while the change prevents leases.
func (c *change) lateMost() float64 {
	most := 0.01
	switch {
	case c.far() && c.mode == modeGroupCommit:
		return 1
	case c.splits && 2*c.trip > limiter.DefaultTimeout: // less than 1 % in most runs
		most = 0.0125
	case c.splits:
	case 2*c.trip > limiter.DefaultTimeout && c.mode == modeGroupCommit: // without a change as well
		most = 0.035
	case c.far() && c.kills:
		most = 0.25
	case c.far():
		most = 0.12
	case 2*c.trip > limiter.DefaultTimeout:
		most = 0.0125
	}
	return most
}

// soon returns how long a change, a reset, a stop and an exact write may take: five round trips and 100 ms. In
// a far store leases are returned one after the other, which takes two more.
func (c *change) soon() time.Duration {
	if c.far() {
		return 7*c.trip + 100*time.Millisecond
	}
	return 5*c.trip + 100*time.Millisecond
}

// lacks returns how many millitokens of the bucket are missing without an explanation, once all
// leases are back. It is the first balance or that of a reset, the refill, and the raise at a
// time. The admissions since and the present balance are subtracted.
func (c *change) lacks(forced time.Time) int64 {
	c.t.Helper()
	s, err := dynamo.New(c.db, dynamo.Config{Table: tableName})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = s.Close(c.t.Context()) }()
	now := time.Now()
	page, err := s.ListBuckets(c.t.Context(), now, limiter.DefaultNamespace, limiter.BucketFilter{}, limiter.Page{})
	if err != nil || len(page.Items) != 1 {
		c.t.Fatalf("%d buckets, %v", len(page.Items), err)
	}
	p, from, level := c.limit.Params(), time.Duration(0), c.limit.Params().Capacity
	if !c.reset.IsZero() {
		from, level = c.reset.Sub(c.began), c.full
	}
	capacity := p.Capacity
	last := time.Duration(-1)
	slices.SortStableFunc(c.calls, func(a, b call) int { return int(a.to - b.to) })
	for i := range c.calls {
		call := &c.calls[i]
		if !call.admitted || call.to < from {
			continue
		}
		if last < 0 {
			last = from
			if c.reset.IsZero() {
				last = call.to // the bucket was full until then
			}
		}
		if at := c.began.Add(call.to); !forced.IsZero() && at.After(forced) {
			level, capacity, forced = level+c.raised*limiter.Milli, capacity+c.raised*limiter.Milli, time.Time{}
		}
		level = min(level+c.refill(call.to-last), capacity)
		last = call.to
		level -= call.amount
	}
	if !forced.IsZero() {
		level, capacity = level+c.raised*limiter.Milli, capacity+c.raised*limiter.Milli
	}
	level = min(level+c.refill(now.Sub(c.began)-last), capacity)
	return level - page.Items[0].Limits[0].Tokens
}

// changes observes the changes that the test's flags name: each with each latency, or with one
// in turn. most bounds the changes.
func changes(t *testing.T, all bool, most int) (results []comparison.Change) {
	t.Helper()
	turn := 0
	some := changings()
	for _, ch := range some[:min(most, len(some))] {
		for _, mode := range ch.modesOf() {
			among := latencies()
			if !all {
				i := turn % len(among)
				among = among[i : i+1]
			}
			turn++
			for _, latency := range among {
				t.Run(ch.name+"/"+strings.TrimPrefix(mode, "lease: ")+"/"+latency.String(), func(t *testing.T) {
					r := hold(t, &ch, mode, latency)
					results = append(results, r.Change)
				})
			}
		}
	}
	return results
}

// hold observes a change, and holds the median of three runs to its bounds. Where the first run
// keeps all of them it is the only one.
func hold(t *testing.T, ch *changing, mode string, latency time.Duration) (r changed) {
	t.Helper()
	for kept, beyond := 0, 0; kept <= beyond && beyond < 2; {
		r = observe(t, ch, mode, latency)
		t.Logf("in force %v, took %v, late %.2f %%, of the ideal %.3f, ended %d, missing %.3f, exact %v", r.Force, r.Took, 100*r.Late, r.Share, r.Ended, float64(r.Missing)/1000, r.kinds)
		for _, fault := range r.faults {
			t.Error(fault)
		}
		if len(r.beyond) == 0 {
			kept++
			continue
		}
		beyond++
		if beyond == 2 {
			t.Errorf("two runs of three: %s", strings.Join(r.beyond, "; "))
		}
	}
	return r
}

// modesOf returns the modes that a change is observed in.
func (ch *changing) modesOf() []string {
	if len(ch.modes) > 0 {
		return ch.modes
	}
	return []string{modeGroupCommit, modeLeases}
}

// The documentation has each change, and the file of changes a row of each mode and latency.
func TestThePageHasAllChanges(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	measured, err := os.ReadFile(changeCSV)
	if err != nil {
		t.Fatal(err)
	}
	results, err := comparison.ParseChanges(string(measured))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	got := make([]string, 0, len(results))
	for _, r := range results {
		got = append(got, fmt.Sprint(r.Scenario, ", ", r.Mode, ", ", r.Latency))
	}
	for _, ch := range changings() {
		if line := fmt.Sprintf("- **%s** %s.", ch.name, ch.text); !strings.Contains(string(text), line) {
			t.Errorf("%s lacks the line %q", page, line)
		}
		for _, mode := range ch.modesOf() {
			for _, latency := range latencies() {
				want = append(want, fmt.Sprint(ch.name, ", ", mode, ", ", latency))
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of %s (-want +got):\n%s", changeCSV, diff)
	}
}

func TestChangeCSV(t *testing.T) {
	const ms = time.Millisecond
	results := []comparison.Change{
		{Scenario: "raise", Mode: modeGroupCommit, Latency: ms, Force: 40 * ms, Exact: 12 * ms, Late: 0.004, Share: 1, Missing: -500},
		{Scenario: "raise", Mode: modeGroupCommit, Latency: 5 * ms, Force: 50 * ms, Exact: 2 * ms, Late: 0.12345, Share: 0.9, Missing: 2500},
		{Scenario: "raise", Mode: modeGroupCommit, Latency: 20 * ms, Force: time.Minute, Share: 130.935},
		{Scenario: "raise", Mode: modeLeases, Latency: ms, Force: 30 * ms, Late: 0.02},
		{Scenario: "reset", Mode: modeLeases, Latency: ms, Took: time.Second, Share: 0.988, Ended: 1, Missing: 1500},
		{Scenario: "reset", Mode: modeOneWrite, Latency: ms, Took: time.Minute},
	}
	text := comparison.ChangeCSV(results)
	got, err := comparison.ParseChanges(text)
	if err != nil || comparison.ChangeCSV(got) != text {
		t.Errorf("the rows\n%sare read as %+v, %v", text, got, err)
	}
	for _, bad := range []string{"", "a,b\n", strings.Replace(text, "130.935", "x", 1), text + "raise,m\n"} {
		if got, err := comparison.ParseChanges(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
