package valkey_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// events collects events of several stores.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) report(of limiter.BudgetEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf("%s/%s/%s %s %v %d%% of %d", of.Namespace, of.Entity, of.Resource, of.Limit, of.Window, of.Percent, of.Tokens))
}

// wants waits until there are events, and requires that there are no others.
func (e *events) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	var got []string
	for time.Now().Before(deadline) {
		e.mu.Lock()
		got = slices.Sorted(slices.Values(e.all))
		e.mu.Unlock()
		if len(got) >= len(want) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// watching is a store that compares its usage with budgets.
type watching struct {
	*valkey.Store

	stop func()
}

// watch has a store compare usage with a budget of the system, until the test ends or stop is called.
func (e *events) watch(t *testing.T, s *valkey.Store, b limiter.Budget) watching {
	t.Helper()
	set, err := limiter.NewBudgets(b)
	if err != nil {
		t.Fatal(err)
	}
	given := limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{limiter.SystemLimitsRef(): set})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		s.WatchBudgets(ctx, 10*time.Millisecond, func() *limiter.BudgetSet { return given }, e.report)
	})
	w := watching{s, sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(w.stop)
	return w
}

// use consumes tokens of the limit l of an entity.
func use(t *testing.T, s limiter.Store, entity string, tokens int64) {
	t.Helper()
	storetest.Consume(t, s, time.Now(), limiter.BucketKey{Namespace: "ns", Entity: entity, Resource: "r"}, map[string]int64{"l": tokens * limiter.Milli})
}

var monthly = limiter.Budget{Limit: "l", Window: limiter.UsageMonth, Tokens: 10}

// Each threshold is told once over all replicas, whichever of them has made the usage. Stored limits have budgets too.
func TestBudgetsAreToldOnce(t *testing.T) {
	server, got := withUser(t, userRules), new(events)
	name := nameOf(t)
	same := func(cfg *valkey.Config) {
		asUser(cfg)
		cfg.Name = name
	}
	a := got.watch(t, onServer(t, server, same), monthly)
	b := got.watch(t, onServer(t, server, same), monthly)
	limits, err := limiter.NewLimits(limiter.PerDay("l", 1000))
	if err != nil {
		t.Fatal(err)
	}
	own, err := limiter.NewBudgets(limiter.Budget{Limit: "l", Window: limiter.UsageDay, Tokens: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Edit(t.Context(), time.Now(), "ns", limiter.Edit{
		Ref:    limiter.EntityLimitsRef("own", limiter.DefaultResource),
		Change: func(limiter.Record) (limiter.Record, error) { return limiter.Record{Limits: limits, Budgets: own}, nil },
	}); err != nil {
		t.Fatal(err)
	}
	use(t, a, "e", 4)
	use(t, b, "e", 4)
	got.wants(t, "at 80 %", "ns/e/r l month 80% of 10")
	use(t, b, "e", 4)
	use(t, a, "own", 4)
	want := []string{
		"ns/e/r l month 100% of 10", "ns/e/r l month 80% of 10", "ns/e/r l month 95% of 10",
		"ns/own/r l day 100% of 4", "ns/own/r l day 80% of 4", "ns/own/r l day 95% of 4",
	}
	got.wants(t, "above them", want...)
	use(t, a, "e", 1)
	use(t, b, "own", 1)
	a.stop()
	b.stop()
	got.wants(t, "at the end", want...)
	if n := server.Must("ACL", "LOG"); n != "0" {
		t.Errorf("the server has refused %s kinds of calls of the user", n)
	}
}

// Usage of a replica that was killed before it compared is told by the next replica that starts. What a replica
// consumes last is told when it ends.
func TestBudgetsOfAReplicaThatIsGone(t *testing.T) {
	server, got := valkeytest.Start(t), new(events)
	name := nameOf(t)
	same := func(cfg *valkey.Config) { cfg.Name = name }
	killed := onServer(t, server, same) // it never compares
	use(t, killed, "e", 8)
	defer func() { _ = killed.Close(t.Context()) }()
	next := got.watch(t, onServer(t, server, same), monthly)
	got.wants(t, "after a start", "ns/e/r l month 80% of 10")
	use(t, next, "last", 8)
	next.stop()
	got.wants(t, "after the end", "ns/e/r l month 80% of 10", "ns/last/r l month 80% of 10")
}

// A process tells nothing twice, where a server that comes back older has lost the note of it.
func TestBudgetsAfterANoteIsLost(t *testing.T) {
	server, got := valkeytest.Start(t), new(events)
	name := nameOf(t)
	s := got.watch(t, onServer(t, server, func(cfg *valkey.Config) { cfg.Name = name }), monthly)
	use(t, s, "e", 8)
	got.wants(t, "before", "ns/e/r l month 80% of 10")
	const lose = `
		local n = 0
		for _, k in ipairs(redis.call('KEYS', '*#USAGE#*')) do n = n + redis.call('HDEL', k, 't_l#10#80') end
		return n`
	if n := server.Must("EVAL", lose, "0"); n != "1" {
		t.Fatalf("%s notes are lost, want 1", n)
	}
	use(t, s, "e", 2)
	got.wants(t, "afterwards", "ns/e/r l month 100% of 10", "ns/e/r l month 80% of 10", "ns/e/r l month 95% of 10")
	s.stop()
	got.wants(t, "at the end", "ns/e/r l month 100% of 10", "ns/e/r l month 80% of 10", "ns/e/r l month 95% of 10")
}

// What is no snapshot in the place of one hides no event of another bucket.
func TestBudgetsBesideACorruptSnapshot(t *testing.T) {
	for name, corrupt := range map[string]string{
		"list":             `redis.call('DEL', k) redis.call('RPUSH', k, 'text')`,
		"value of no type": `redis.call('HSET', k, 'u_l', '')`,
	} {
		t.Run(name, func(t *testing.T) {
			server, got := valkeytest.Start(t), new(events)
			table := nameOf(t)
			same := func(cfg *valkey.Config) { cfg.Name = table }
			first := onServer(t, server, same)
			use(t, first, "broken", 1)
			use(t, first, "whole", 8)
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			const all = `local n = 0 for _, k in ipairs(redis.call('KEYS', '*ENTITY#broken*USAGE*')) do %s n = n + 1 end return n`
			if n := server.Must("EVAL", fmt.Sprintf(all, corrupt), "0"); n != "3" {
				t.Fatalf("%s snapshots are corrupt, want 3", n)
			}
			next := got.watch(t, onServer(t, server, same), monthly)
			got.wants(t, "after a start", "ns/whole/r l month 80% of 10")
			use(t, next, "broken", 1)
			use(t, next, "whole", 2)
			got.wants(t, "later", "ns/whole/r l month 100% of 10", "ns/whole/r l month 80% of 10", "ns/whole/r l month 95% of 10")
			next.stop()
		})
	}
}
