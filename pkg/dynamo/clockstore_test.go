package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// machine is a replica whose clock is off. It tells its clock of the Date of every
// reply, as the client does; the true time is time.Now's.
type machine struct {
	*dynamofake.DB
	lie   func() time.Duration // what the Date of a reply is off by; nil = nothing
	clock *Clock

	mu    sync.Mutex
	off   time.Duration
	still time.Time // what its clock shows while the machine is paused; zero = it is not
}

func newMachine(db *dynamofake.DB, off time.Duration) *machine {
	m := &machine{DB: db, off: off}
	m.clock = NewClock(m.now, 0)
	return m
}

func (m *machine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.still.IsZero() {
		return m.still
	}
	return time.Now().Add(m.off)
}

// pause has the machine's clock stand still, both readings of it.
func (m *machine) pause() {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.still = now
}

// goOn ends a pause.
func (m *machine) goOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off, m.still = time.Until(m.still), time.Time{}
}

func dated[I, O any](ctx context.Context, m *machine, call func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error), in *I) (*O, error) {
	sent := m.now()
	out, err := call(ctx, in)
	date := time.Now()
	if m.lie != nil {
		date = date.Add(m.lie())
	}
	m.clock.Observe(sent, m.now(), date.Truncate(time.Second))
	return out, err
}

func (m *machine) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return dated(ctx, m, m.DB.UpdateItem, in)
}

func (m *machine) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return dated(ctx, m, m.DB.PutItem, in)
}

func (m *machine) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return dated(ctx, m, m.DB.GetItem, in)
}

// store returns a store of the machine, closed when the test ends.
func (m *machine) store(t *testing.T, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{Client: m, Table: simTable, Clock: m.clock}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStores(t *testing.T, stores ...*Store) {
	t.Helper()
	for _, s := range stores {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

func bucketTable(t *testing.T) *dynamofake.DB {
	t.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(t.Context(), TableInput(simTable)); err != nil {
		t.Fatal(err)
	}
	return db
}

func opOn(t *testing.T, entity string, l limiter.Limit, sp limiter.Spend) limiter.Op {
	t.Helper()
	set, err := limiter.NewLimits(l)
	if err != nil {
		t.Fatal(err)
	}
	sp.Limit = l.Name
	return limiter.Op{Bucket: limiter.BucketKey{Entity: entity, Resource: "r"}, Limits: set, Generation: 1, Spends: []limiter.Spend{sp}}
}

// admission is a token that was taken between two moments.
type admission struct{ from, to time.Time }

// excess returns by how many tokens the admissions of any window pass burst + rate in
// it; 0 or less is none.
func excess(all []admission, burst, rate float64) float64 {
	worst := -burst
	for _, first := range all {
		n := 0
		for _, a := range all { // in order of to
			if !a.from.Before(first.from) {
				n++
				worst = max(worst, float64(n)-burst-rate*a.to.Sub(first.from).Seconds())
			}
		}
	}
	return worst
}

// contend has callers of every machine ask for one token of a bucket again and
// again, each by its machine's clock. It returns what was admitted, and what two of
// the clocks, as far as they were trusted, could differ by.
func contend(t *testing.T, stores []*Store, machines []*machine, o limiter.Op, span, pause time.Duration) (all []admission, eps time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	uncertain := make([]time.Duration, len(stores))
	for i, s := range stores {
		wg.Go(func() {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(pause) {
				from := time.Now()
				if state := machines[i].clock.State(); state.Trusted {
					uncertain[i] = max(uncertain[i], state.Uncertainty)
				}
				own := o
				own.Spends = []limiter.Spend{o.Spends[0]}
				ok, err := s.Take(t.Context(), machines[i].now(), []limiter.Op{own})
				if err != nil {
					t.Error(err)
				}
				if ok {
					mu.Lock()
					all = append(all, admission{from, time.Now()})
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(uncertain)
	return all, uncertain[len(uncertain)-1] + uncertain[len(uncertain)-2]
}

// Replicas whose clocks are hours apart admit together what one with the right time
// would, but for what their clocks are known to differ still. Without corrected
// clocks they admit far more.
func TestReplicasWithWrongClocks(t *testing.T) {
	for _, corrected := range []bool{true, false} {
		t.Run(fmt.Sprintf("corrected %t", corrected), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const burst, rate, span = 20, 2, 30 * time.Second
				db := bucketTable(t)
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 3 * time.Millisecond} })
				machines := []*machine{newMachine(db, -time.Hour), newMachine(db, time.Hour), newMachine(db, 400*time.Millisecond)}
				stores := make([]*Store, len(machines))
				for i, m := range machines {
					stores[i] = m.store(t, func(cfg *Config) {
						if !corrected {
							cfg.Clock = nil
						}
					})
				}
				defer closeStores(t, stores...)
				l := limiter.Custom("l", burst, rate, time.Second)
				contend(t, stores, machines, opOn(t, "other", l, limiter.Spend{Take: limiter.Milli}), 10*time.Second, 137*time.Millisecond)
				o := opOn(t, "e", l, limiter.Spend{Take: limiter.Milli})
				all := make([]admission, 0, 2*burst)
				for range burst { // by the clock that is behind
					from := time.Now()
					if ok, err := stores[0].Take(t.Context(), machines[0].now(), []limiter.Op{o}); !ok || err != nil {
						t.Fatalf("got %t, %v", ok, err)
					}
					all = append(all, admission{from, time.Now()})
				}
				more, eps := contend(t, stores, machines, o, span, 20*time.Millisecond)
				all = append(all, more...)
				over := excess(all, burst+rate*eps.Seconds(), rate)
				t.Logf("%d admitted, uncertainty %v, %.2f tokens above the bound", len(all), eps, over)
				switch ideal := burst + int(rate*span.Seconds()); {
				case eps > 300*time.Millisecond:
					t.Errorf("the clocks may differ by %v after 10 s", eps)
				case corrected && over > 0:
					t.Errorf("%.2f tokens too many", over)
				case corrected && len(all) < ideal-rate:
					t.Errorf("%d admitted of %d", len(all), ideal)
				case !corrected && over <= 0:
					t.Error("clocks that are hours apart did no harm: the test shows nothing")
				}
			})
		})
	}
}

// A machine that slept, or whose clock ran away, goes on by the right time after the
// replies to one request; nothing is admitted twice meanwhile, and rf is never set
// to the wrong time.
func TestAClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const burst, rate = 20, 2
				db := bucketTable(t)
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 3 * time.Millisecond} })
				machines := []*machine{newMachine(db, 0), newMachine(db, 0)}
				stores := []*Store{machines[0].store(t, nil), machines[1].store(t, nil)}
				defer closeStores(t, stores...)
				o := opOn(t, "e", limiter.Custom("l", burst, rate, time.Second), limiter.Spend{Take: limiter.Milli})
				all, _ := contend(t, stores, machines, o, 10*time.Second, 20*time.Millisecond)
				machines[0].off += jump
				// One reply: another request of the same machine.
				if _, err := stores[0].Take(t.Context(), machines[0].now(), []limiter.Op{opOn(t, "other", limiter.PerDay("l", 1), limiter.Spend{Look: true})}); err != nil {
					t.Fatal(err)
				}
				before := len(all)
				more, eps := contend(t, stores, machines, o, 10*time.Second, 20*time.Millisecond)
				all = append(all, more...)
				if over := excess(all, burst+rate*eps.Seconds(), rate); over > 0 || eps > 2*time.Second {
					t.Errorf("%.2f tokens too many, with clocks that may differ by %v", over, eps)
				}
				if got := len(all) - before; got < 8*rate {
					t.Errorf("%d admitted in 10 s after the jump, want at least %d", got, 8*rate)
				}
				if got := stores[0].Stats().Halts; got != 1 || stores[1].Stats().Halts != 0 {
					t.Errorf("refills stopped %d and %d times, want 1 and 0", got, stores[1].Stats().Halts)
				}
				if v := time.Until(machines[0].clock.Correct(machines[0].now())).Abs(); v > 100*time.Millisecond {
					t.Errorf("the clock is wrong by %v", v)
				}
			})
		})
	}
}

// liar makes a machine hear of two times by turns, so that its clock is not trusted.
func (m *machine) liar() {
	by := time.Hour
	m.lie = func() time.Duration { by = -by; return by }
}

// With a clock that cannot be trusted what is stored is taken, without an rf; what is
// not there is denied; and what nobody can know is undecided, after a few reads.
func TestWithoutATrustedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := bucketTable(t)
		m := newMachine(db, 0)
		var log bytes.Buffer
		s := m.store(t, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		defer closeStores(t, s)
		take := func(entity string, l limiter.Limit, sp limiter.Spend) (bool, error) {
			return s.Take(t.Context(), m.now(), []limiter.Op{opOn(t, entity, l, sp)})
		}
		day, second := limiter.PerDay("l", 10), limiter.PerSecond("l", 10)
		for entity, spends := range map[string][]limiter.Spend{
			"part": {{Take: 5 * limiter.Milli}}, "due": {{Take: 5 * limiter.Milli}}, "full": {{Take: 5 * limiter.Milli}, {Refund: 5 * limiter.Milli}},
		} {
			for _, sp := range spends {
				l := day
				if entity == "due" {
					l = second
				}
				if ok, err := take(entity, l, sp); !ok || err != nil {
					t.Fatalf("%s: %t, %v", entity, ok, err)
				}
			}
		}
		m.liar()
		if _, err := take("part", day, limiter.Spend{Look: true}); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			name, entity string
			limit        limiter.Limit
			spend        limiter.Spend
			want         bool
			err          error
			reads        int
		}{
			{"what is stored", "part", day, limiter.Spend{Take: 2 * limiter.Milli}, true, nil, 0},
			{"a charge", "part", day, limiter.Spend{Charge: limiter.Milli}, true, nil, 0},
			{"a refund", "part", day, limiter.Spend{Refund: limiter.Milli}, true, nil, 0},
			{"more than there can be", "part", day, limiter.Spend{Take: 9 * limiter.Milli}, false, nil, 0},
			{"what may be due", "due", second, limiter.Spend{Take: 6 * limiter.Milli}, false, limiter.ErrUnavailable, awsdb.JumpReplies},
			{"of a full limit", "full", day, limiter.Spend{Take: limiter.Milli}, false, limiter.ErrUnavailable, awsdb.JumpReplies},
			{"without an item", "none", day, limiter.Spend{Take: limiter.Milli}, false, limiter.ErrUnavailable, awsdb.JumpReplies},
		} {
			refilled := refilledAt(t, s, tc.entity)
			reads := s.Stats().Reads
			got, err := take(tc.entity, tc.limit, tc.spend)
			if got != tc.want || !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), "the clock of this machine may be off by ") {
				t.Errorf("%s: got %t, %v; want %t, %v", tc.name, got, err, tc.want, tc.err)
			}
			if n := s.Stats().Reads - reads; n < int64(tc.reads) || n > awsdb.JumpReplies {
				t.Errorf("%s: %d reads", tc.name, n)
			}
			if at := refilledAt(t, s, tc.entity); at != refilled {
				t.Errorf("%s: rf went from %q to %q", tc.name, refilled, at)
			}
		}
		m.lie = nil
		if ok, err := take("none", day, limiter.Spend{Take: limiter.Milli}); !ok || err != nil {
			t.Errorf("with true replies: %t, %v", ok, err)
		}
		if got := s.Stats().Halts; got != 1 || strings.Count(log.String(), "\n") != 2 {
			t.Errorf("refills stopped %d times, want 1; the log has\n%s", got, log.String())
		}
	})
}

// refilledAt returns rf of an entity's bucket, "" when there is no item.
func refilledAt(t *testing.T, s *Store, entity string) string {
	t.Helper()
	ns, err := s.NamespaceID(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	item, err := s.readOnce(t.Context(), &lane{key: schema.BucketKey(ns, entity, "r", 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	s.stats.reads.Add(-1)
	if item == nil {
		return ""
	}
	n, ok := item[schema.AttrRefilled].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("rf is %v", item[schema.AttrRefilled])
	}
	return n.Value
}

// Nothing contradicts a clock of which no reply said anything: the first decision
// does not wait for one.
func TestAClockWithoutReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := bucketTable(t)
		m := newMachine(db, 0)
		s := m.store(t, func(cfg *Config) { cfg.Client = db })
		defer closeStores(t, s)
		for range 2 {
			if ok, err := s.Take(t.Context(), m.now(), []limiter.Op{opOn(t, "e", limiter.PerSecond("l", 1), limiter.Spend{Take: limiter.Milli})}); !ok || err != nil {
				t.Errorf("got %t, %v", ok, err)
			}
			time.Sleep(time.Second)
		}
		if got := s.Stats().Halts; got != 0 {
			t.Errorf("refills stopped %d times", got)
		}
	})
}

// What a caller is told is by its own clock: a wait is as long as it says.
func TestTimesAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(bucketTable(t), -time.Hour)
		s := m.store(t, nil)
		defer closeStores(t, s)
		for _, want := range []bool{true, false} {
			o := opOn(t, "e", limiter.PerMinute("l", 1), limiter.Spend{Take: limiter.Milli})
			if ok, err := s.Take(t.Context(), m.now(), []limiter.Op{o}); ok != want || err != nil {
				t.Fatalf("got %t, %v; want %t", ok, err, want)
			}
			if ahead := o.Spends[0].Bucket.Refilled - m.now().UnixMilli(); max(ahead, -ahead) > 2000 {
				t.Errorf("the bucket is told as it is %d ms after the caller's clock", ahead)
			}
		}
	})
}

// The times in records are by the corrected clock.
func TestRecordsHaveTheRightTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(bucketTable(t), -time.Hour)
		s := m.store(t, func(cfg *Config) { cfg.Now = m.now })
		defer closeStores(t, s)
		if _, err := s.Take(t.Context(), m.now(), []limiter.Op{opOn(t, "e", limiter.PerDay("l", 1), limiter.Spend{Look: true})}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutEntity(t.Context(), m.now(), "", limiter.Entity{ID: "e"}); err != nil {
			t.Fatal(err)
		}
		events, err := s.ListEvents(t.Context(), "", limiter.EntityRef("e"), limiter.Page{})
		if err != nil || len(events.Items) == 0 {
			t.Fatalf("%d events, %v", len(events.Items), err)
		}
		for _, e := range events.Items {
			if time.Since(e.Time).Abs() > 2*time.Second {
				t.Errorf("the change is said to be %v old", time.Since(e.Time))
			}
		}
	})
}
