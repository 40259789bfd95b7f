package aggregator

import (
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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// standings are snapshots of one shard in memory, whose calls fail before or after they are applied.
type standings struct {
	mu   sync.Mutex
	has  map[Snapshot]Sequence
	all  map[Snapshot]Standing
	dice *rand.Rand // nil = no call fails

	stored map[string]limiter.StoredBudgets // by entity
}

var errTold = errors.New("no answer")

// fails reports whether a call is not made, and whether its answer is lost.
func (s *standings) fails() (before, after bool) {
	if s.dice == nil {
		return false, false
	}
	n := s.dice.IntN(6)
	return n == 0, n == 1
}

func (s *standings) Add(ctx context.Context, c *Change) (Sequence, error) {
	has, _, err := s.Post(ctx, c)
	return has, err
}

func (s *standings) Post(_ context.Context, c *Change) (Sequence, Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.fails()
	if before {
		return "", Standing{}, errTold
	}
	now := s.standing(c.Snapshot)
	if has := s.has[c.Snapshot]; has != "" && has.Compare(c.First) >= 0 {
		return has, now, nil
	}
	s.has[c.Snapshot] = c.Last
	for limit, n := range c.Used {
		now.Used[limit] += n
	}
	s.all[c.Snapshot] = now
	if after {
		return "", Standing{}, errTold
	}
	return "", s.standing(c.Snapshot), nil
}

// standing returns a copy of a snapshot. s.mu must be locked.
func (s *standings) standing(of Snapshot) Standing {
	now := Standing{Entity: of.Bucket.Entity, Resource: of.Bucket.Resource, Used: map[string]int64{}, Told: map[Mark]string{}}
	maps.Copy(now.Used, s.all[of].Used)
	maps.Copy(now.Told, s.all[of].Told)
	return now
}

func (s *standings) Note(_ context.Context, of *Snapshot, marks []Mark, by string) (bool, Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.fails()
	if before {
		return false, Standing{}, errTold
	}
	now := s.standing(*of)
	for _, m := range marks {
		if now.Told[m] != "" {
			return false, now, nil
		}
	}
	for _, m := range marks {
		now.Told[m] = by
	}
	s.all[*of] = now
	if after {
		return false, Standing{}, errTold
	}
	return true, s.standing(*of), nil
}

func (s *standings) NamespaceName(_ context.Context, id string) (string, error) {
	return map[string]string{"id": "default"}[id], nil
}

func (s *standings) StoredBudgets(_ context.Context, of Bucket) (limiter.StoredBudgets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, after := s.fails(); before || after {
		return limiter.StoredBudgets{}, errTold
	}
	return s.stored[of.Entity], nil
}

func newStandings(seed uint64) *standings {
	s := &standings{has: map[Snapshot]Sequence{}, all: map[Snapshot]Standing{}}
	if seed > 0 {
		s.dice = rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- of a test
	}
	return s
}

// budgets returns budgets that stand at a place.
func budgets(t *testing.T, at limiter.Ref, all ...limiter.Budget) *limiter.BudgetSet {
	t.Helper()
	set, err := limiter.NewBudgets(all...)
	if err != nil {
		t.Fatal(err)
	}
	return limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{at: set})
}

// told collects events as text.
type told struct {
	mu  sync.Mutex
	all []string
}

func (c *told) tell(e limiter.BudgetEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprint(e.Namespace, "/", e.Entity, "/", e.Resource, " ", e.Limit, " ", e.Window, " ", e.Percent, "% of ", e.Tokens))
}

// take is a record in which an entity uses tokens of the limit tpm.
func take(n int, entity string, tokens int64) *Record {
	return &Record{
		Sequence: Sequence(strconv.Itoa(n)), Time: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
		Bucket: Bucket{Namespace: "id", Entity: entity, Resource: "r"}, New: &Image{Consumed: map[string]int64{"tpm": tokens * limiter.Milli}},
	}
}

// Each threshold is reported once for a window, a limit and an entity, by one of two processes. Their calls
// fail before and after they were applied, and they see each record twice.
func TestEachThresholdIsToldOnce(t *testing.T) {
	for seed := range uint64(30) {
		var events told
		s := newStandings(seed)
		set := budgets(t, limiter.SystemLimitsRef(), limiter.Budget{Limit: "tpm", Window: limiter.UsageHour, Tokens: 1000}, limiter.Budget{Limit: "tpm", Window: limiter.UsageMonth, Tokens: 2000})
		var processes sync.WaitGroup
		for range 2 {
			processes.Go(func() {
				b, to := NewBatch("s", limiter.UsageWindows(), nil), NewThresholds(s, func() *limiter.BudgetSet { return set }, events.tell)
				for i := range 110 {
					b.Add(take(2*i, "a", 10))
					b.Add(take(2*i+1, "b", 4))
					for _, err := b.Flush(t.Context(), to); err != nil; {
						_, err = b.Flush(t.Context(), to)
					}
				}
			})
		}
		processes.Wait()
		slices.Sort(events.all)
		want := []string{"default/a/r tpm hour 100% of 1000", "default/a/r tpm hour 80% of 1000", "default/a/r tpm hour 95% of 1000"}
		if diff := cmp.Diff(want, events.all); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// One write that passes all thresholds reports each of them. A refund below one reports none, and a
// changed budget is reported anew. A namespace that is gone has no events.
func TestThresholdsOfChanges(t *testing.T) {
	var events told
	s := newStandings(0)
	add := func(tokens int64, r *Record) {
		t.Helper()
		b := NewBatch("s", []limiter.UsageWindow{limiter.UsageDay}, nil)
		b.Add(r)
		set := budgets(t, limiter.EntityLimitsRef("a", limiter.DefaultResource), limiter.Budget{Limit: "tpm", Window: limiter.UsageDay, Tokens: tokens})
		if _, err := b.Flush(t.Context(), NewThresholds(s, func() *limiter.BudgetSet { return set }, events.tell)); err != nil {
			t.Fatal(err)
		}
	}
	gone := take(5, "a", 5000)
	gone.Bucket.Namespace = "gone"
	add(100, take(1, "a", 500))
	add(100, take(2, "a", -450))
	add(100, take(3, "a", 50))
	add(100, take(4, "b", 500))
	add(100, gone)
	add(110, take(6, "a", -5)) // 95 of 110
	want := []string{
		"default/a/r tpm day 80% of 100", "default/a/r tpm day 95% of 100", "default/a/r tpm day 100% of 100", "default/a/r tpm day 80% of 110",
	}
	if diff := cmp.Diff(want, events.all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Budgets of stored limits are compared too, without any in the configuration, and replace those of the
// configuration at their place.
func TestThresholdsOfStoredLimits(t *testing.T) {
	tpm, err := limiter.NewLimits(limiter.PerDay("tpm", 1))
	if err != nil {
		t.Fatal(err)
	}
	day := func(tokens int64) limiter.StoredBudgetLimits {
		at := limiter.SystemLimitsRef()
		return limiter.StoredBudgetLimits{Limits: tpm, Budgets: budgets(t, at, limiter.Budget{Limit: "tpm", Window: limiter.UsageDay, Tokens: tokens}).At(at)}
	}
	var events told
	s := newStandings(0)
	s.stored = map[string]limiter.StoredBudgets{"a": {0: day(10)}, "b": {3: day(20)}, "c": {3: {Limits: tpm}}}
	add := func(set *limiter.BudgetSet, entity string, n int) {
		t.Helper()
		b := NewBatch("s", []limiter.UsageWindow{limiter.UsageDay}, nil)
		b.Add(take(n, entity, 16))
		if _, err := b.Flush(t.Context(), NewThresholds(s, func() *limiter.BudgetSet { return set }, events.tell)); err != nil {
			t.Fatal(err)
		}
	}
	for i, entity := range []string{"a", "b", "c", "d"} {
		add(nil, entity, i)
	}
	system := budgets(t, limiter.SystemLimitsRef(), limiter.Budget{Limit: "tpm", Window: limiter.UsageDay, Tokens: 40})
	for i, entity := range []string{"a", "b", "c", "d"} {
		add(system, entity, i+4)
	}
	want := []string{
		"default/a/r tpm day 80% of 10", "default/a/r tpm day 95% of 10", "default/a/r tpm day 100% of 10",
		"default/b/r tpm day 80% of 20", "default/b/r tpm day 95% of 20", "default/b/r tpm day 100% of 20", "default/d/r tpm day 80% of 40",
	}
	if diff := cmp.Diff(want, events.all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Usage of a namespace without a name counts, and the log has the namespace once.
func TestANamespaceWithoutAName(t *testing.T) {
	f, s, events := newFleet(), newStandings(0), new(told)
	set := budgets(t, limiter.SystemLimitsRef(), limiter.Budget{Limit: "rpm", Window: limiter.UsageHour, Tokens: 1})
	var log strings.Builder
	to := NewThresholds(s, func() *limiter.BudgetSet { return set }, events.tell)
	to.Logger = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 3 {
		f.write("s", "k", Bucket{"gone", "e", "r"}, begin(), "rpm", 5000)
		b := NewBatch("s", []limiter.UsageWindow{limiter.UsageHour}, nil)
		b.Add(&f.shards["s"][i])
		if done, err := b.Flush(t.Context(), to); err != nil || done.Written != 1 {
			t.Errorf("%+v, %v", done, err)
		}
	}
	if strings.Count(log.String(), "its budgets are not compared") != 1 || !strings.Contains(log.String(), "id=gone") || len(events.all) != 0 {
		t.Errorf("log %q, events %v", log.String(), events.all)
	}
}
