package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// board is the reports of a store in the memory of a test, which can fail.
type board struct {
	mu      sync.Mutex
	all     map[string]limiter.Report
	at      map[string]time.Time
	dead    map[string]bool // replicas that were killed: nothing comes from them
	err     error           // of all calls
	silent  bool            // no call is answered
	reads   int
	refused error // the first report that no store takes
}

func newBoard() *board {
	return &board{all: map[string]limiter.Report{}, at: map[string]time.Time{}, dead: map[string]bool{}}
}

func (b *board) answer(ctx context.Context) error {
	b.mu.Lock()
	silent, err := b.silent, b.err
	b.mu.Unlock()
	if silent {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", limiter.ErrUnavailable, ctx.Err())
	}
	return err
}

// WriteReport implements limiter.Reports.
func (b *board) WriteReport(ctx context.Context, replica string, body []byte) error {
	if err := b.answer(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := limiter.CheckReport(replica, body); err != nil {
		b.refused = err
		return err
	}
	if !b.dead[replica] {
		b.all[replica], b.at[replica] = limiter.Report{Replica: replica, Body: bytes.Clone(body)}, time.Now()
	}
	return nil
}

// ReadReports implements limiter.Reports.
func (b *board) ReadReports(ctx context.Context) ([]limiter.Report, error) {
	b.mu.Lock()
	b.reads++
	b.mu.Unlock()
	if err := b.answer(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []limiter.Report
	for _, r := range b.all {
		if r.Age = time.Since(b.at[r.Replica]); r.Age < limiter.ReportAge {
			all = append(all, r)
		}
	}
	return all, nil
}

// set changes how the board answers.
func (b *board) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// member is a process that runs, by the clock of a bubble.
type member struct {
	*process

	stop func() // in order
	log  *bytes.Buffer
}

// run starts a process that tells of itself on a board.
func (b *board) run(t *testing.T) *member {
	t.Helper()
	m := &member{log: new(bytes.Buffer)}
	events := fleet.NewEvents(time.Now)
	m.process = newProcess(time.Now(), func(c *fleet.Config) {
		c.Now, c.Events, c.Reports = time.Now, events, b
		c.Logger = slog.New(slog.NewTextHandler(m.log, nil))
	})
	m.events = events
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx) // it returns nil
	}()
	m.stop = func() {
		cancel()
		<-done
	}
	return m
}

// ids returns the ids of the replicas that a member shows.
func (m *member) ids(t *testing.T) []string {
	t.Helper()
	replicas := m.State(t.Context()).Replicas
	ids := make([]string, 0, len(replicas))
	for _, r := range replicas {
		ids = append(ids, r.ID)
	}
	return ids
}

// Replicas see each other, with the decisions and events of all. One that stops is gone at once, and one that was
// killed after a minute. What they decided stays in the sums.
func TestReplicasSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		one := b.run(t)
		time.Sleep(time.Second)
		two, three := b.run(t), b.run(t)
		time.Sleep(time.Second)
		if got, want := one.ids(t), []string{one.ID(), two.ID(), three.ID()}; len(got) != 3 || got[0] != want[0] || !slices.Contains(got, want[1]) || !slices.Contains(got, want[2]) {
			t.Fatalf("replicas %v, want %v", got, want)
		}
		one.decide(1, 0)
		two.decide(10, 5)
		three.decide(100, 0)
		three.events.Record(api.EventReload, "of three")
		time.Sleep(fleet.Every + fleet.Fresh)
		state := one.State(t.Context())
		if sums := total(state); !cmp.Equal(sums, map[string]int64{"allowed": 111, "denied": 5}) {
			t.Errorf("decisions %v", sums)
		}
		if e := state.Events; len(e) != 1 || e[0].Text != "of three" || e[0].Replica != three.ID() {
			t.Errorf("events %+v", e)
		}
		if age := state.Time.Sub(state.Complete); age < 0 || age > fleet.Every+fleet.Fresh+fleet.Step || state.Complete.Before(state.Begin) {
			t.Errorf("complete until %v at %v", state.Complete, state.Time)
		}

		b.set(func() { b.dead[two.ID()] = true })
		three.events.Record(api.EventStop, "three stops")
		three.stop()
		time.Sleep(fleet.Fresh)
		if got := one.ids(t); !slices.Equal(got, []string{one.ID(), two.ID()}) {
			t.Errorf("after a stop: %v", got)
		}
		if e := one.State(t.Context()).Events[0]; e.Text != "three stops" {
			t.Errorf("the newest event is %+v", e)
		}
		two.stop()
		time.Sleep(fleet.Live)
		if got := one.ids(t); !slices.Equal(got, []string{one.ID()}) {
			t.Errorf("after a kill: %v", got)
		}
		if sums := total(one.State(t.Context())); !cmp.Equal(sums, map[string]int64{"allowed": 111, "denied": 5}) {
			t.Errorf("decisions after the others have gone: %v", sums)
		}
		one.stop()
	})
}

// total adds up the steps.
func total(f *api.Fleet) map[string]int64 {
	all := map[string]int64{}
	for result, list := range f.Results {
		for _, n := range list {
			all[result] += n
		}
	}
	return all
}

// Many readers cost no more than one.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		m := b.run(t)
		for range 60 {
			var group sync.WaitGroup
			for range 10 {
				group.Go(func() { m.State(t.Context()) })
			}
			group.Wait()
			time.Sleep(time.Second)
		}
		m.stop()
		if b.reads != 12 {
			t.Errorf("%d reads in a minute, want 12", b.reads)
		}
	})
}

// A store that fails, or is silent, costs the others and nothing else. It is not asked more often, and a failure has one line.
func TestFailingReports(t *testing.T) {
	for name, fail := range map[string]func(*board){
		"unavailable": func(b *board) { b.err = limiter.ErrUnavailable },
		"unknown":     func(b *board) { b.err = errors.New("broken") },
		"denied":      func(b *board) { b.err = limiter.ErrInvalid },
		"silent":      func(b *board) { b.silent = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard()
				one, two := b.run(t), b.run(t)
				time.Sleep(time.Second)
				if got := one.ids(t); len(got) != 2 {
					t.Fatalf("replicas %v", got)
				}
				b.set(func() { fail(b) })
				time.Sleep(fleet.Live / 2)
				began, before := time.Now(), b.reads
				if got := one.ids(t); len(got) != 2 {
					t.Errorf("soon after the failure: %v", got)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
				for range 60 {
					one.State(t.Context())
					time.Sleep(time.Second)
				}
				if got := one.ids(t); !slices.Equal(got, []string{one.ID()}) {
					t.Errorf("a minute after the failure: %v", got)
				}
				if n := b.reads - before; n > 15 {
					t.Errorf("%d reads in a minute", n)
				}
				if n := strings.Count(one.log.String(), "\n"); n > 1 || n == 0 && (name == "unknown" || name == "denied") {
					t.Errorf("log:\n%s", one.log)
				}
				one.stop()
				two.stop()
			})
		})
	}
}

// A caller that leaves does not wait for the store.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		m := b.run(t)
		b.set(func() { b.silent = true })
		var first sync.WaitGroup
		first.Go(func() { m.State(t.Context()) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if got := m.State(ctx).Replicas; len(got) != 1 || time.Since(began) > 0 {
			t.Errorf("%d replicas after %v", len(got), time.Since(began))
		}
		first.Wait()
		m.stop()
	})
}

// The top of the fleet has the sums of all replicas, by the same filter.
func TestTopOfFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		one, two := b.run(t), b.run(t)
		for range 3 {
			one.denied.Add(time.Now(), key("a"), 1000)
			two.denied.Add(time.Now(), key("a"), 1000)
			two.denied.Add(time.Now(), key("\xff"), 1000)
		}
		two.denied.Add(time.Now(), controlapi.TopKey{Namespace: "other"}, 7)
		long := strings.Repeat("k", 300)
		for _, m := range []*member{one, two} { // names are shortened once, however many processes they pass
			m.denied.Add(time.Now(), key(long), 1)
		}
		time.Sleep(fleet.Every + time.Second) // all have reported after it
		row := func(k controlapi.TopKey, n, amount int64) controlapi.TopRow {
			return controlapi.TopRow{TopKey: k, Events: n, Amount: amount}
		}
		a, ff, kk := row(key("a"), 6, 6000), row(key("\xff"), 3, 3000), row(key(limiter.ShortName(long)), 2, 2)
		for name, test := range map[string]struct {
			n      int
			filter controlapi.TopFilter
			want   []controlapi.TopRow
		}{
			"all":      {20, controlapi.TopFilter{}, []controlapi.TopRow{a, ff, kk, row(controlapi.TopKey{Namespace: "other"}, 1, 7)}},
			"one":      {1, controlapi.TopFilter{}, []controlapi.TopRow{a}},
			"filtered": {20, controlapi.TopFilter{Namespace: "default", Resource: "api", Limit: "rpm"}, []controlapi.TopRow{a, ff, kk}},
			"entity":   {20, controlapi.TopFilter{Entity: "\xff"}, []controlapi.TopRow{ff}},
			"a long":   {20, controlapi.TopFilter{Entity: long}, []controlapi.TopRow{kk}},
			"as shown": {20, controlapi.TopFilter{Entity: limiter.ShortName(long)}, []controlapi.TopRow{kk}},
		} {
			if diff := cmp.Diff(test.want, one.Top(t.Context(), api.TopDenied, test.n, test.filter)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
		two.stop()
		time.Sleep(fleet.Fresh)
		if got := one.Top(t.Context(), api.TopDenied, 20, controlapi.TopFilter{}); !cmp.Equal(got, []controlapi.TopRow{row(key("a"), 3, 3000), row(key(limiter.ShortName(long)), 1, 1)}) {
			t.Errorf("after the stop of the other: %v", got)
		}
		one.stop()
	})
}

func key(entity string) controlapi.TopKey {
	return controlapi.TopKey{Namespace: "default", Entity: entity, Resource: "api", Limit: "rpm"}
}

// A report fits, whatever names clients invent, and still has the state and some rows.
func TestHostileNames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 64<<10)
	noise := func() string { // the longest name, whose begin and so whose hash is new
		for i := range limiter.MaxShownName {
			long[i] = byte(random.IntN(256))
		}
		return string(long)
	}
	for kind, name := range map[string]func() string{
		"random bytes":       noise,
		"control characters": func() string { return strings.Repeat("\x00", 300) + noise()[:20] },
		"markup":             func() string { return strings.Repeat("<script>&", 30) + strconv.FormatInt(random.Int64(), 10) },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard()
				one, two := b.run(t), b.run(t)
				for range 100 {
					two.denied.Add(time.Now(), controlapi.TopKey{Namespace: name(), Entity: name(), Resource: name(), Limit: name()}, 1)
				}
				for range fleet.Steps / 3 {
					two.decide(random.Int64N(1<<20), random.Int64N(1<<20))
					two.events.Record(api.EventBudget, name())
					time.Sleep(fleet.Step)
					two.denied.Add(time.Now(), controlapi.TopKey{Namespace: name(), Entity: name(), Resource: name(), Limit: name()}, 1)
				}
				time.Sleep(fleet.Every)
				if got := one.ids(t); len(got) != 2 || b.refused != nil {
					t.Errorf("replicas %v, %v; sizes %v", got, b.refused, slices.Collect(maps.Keys(b.all)))
				}
				if got := one.Top(t.Context(), api.TopDenied, 20, controlapi.TopFilter{}); len(got) == 0 {
					t.Error("there are no rows")
				}
				one.stop()
				two.stop()
			})
		})
	}
}

// What another process has written is bounded, and one of another form is no replica.
func TestForeignReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		for i, body := range []string{"\x00", "no deflate", "{}", string(bytes.Repeat([]byte{0xff}, limiter.MaxReport))} {
			if err := b.WriteReport(t.Context(), fmt.Sprint("foreign-", i), []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		m := b.run(t)
		if got := m.ids(t); !slices.Equal(got, []string{m.ID()}) {
			t.Errorf("replicas %v", got)
		}
		m.stop()
	})
}
