package reservation_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// world is a ledger over a store that fails by plan, inside a bubble of its own time.
type world struct {
	t      *testing.T
	store  *storetest.Faulty
	slow   *slowStore // before it
	ledger *reservation.Ledger
	limits *limiter.Limits
	d      limiter.Decision
}

// slowStore is a store with a delay before each take.
type slowStore struct {
	limiter.Store

	pause   atomic.Pointer[func()] // nil = none
	running atomic.Int64
	most    atomic.Int64 // at a time
	takings atomic.Int64
}

// takes sets a delay before each take.
func (s *slowStore) takes(d time.Duration) {
	pause := func() { time.Sleep(d) }
	s.pause.Store(&pause)
}

// hangs stops each take until release is closed.
func (s *slowStore) hangs(release <-chan struct{}) {
	pause := func() { <-release }
	s.pause.Store(&pause)
}

// Take implements limiter.Store.
func (s *slowStore) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	s.takings.Add(1)
	for n := s.running.Add(1); ; {
		if most := s.most.Load(); most >= n || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	defer s.running.Add(-1)
	if pause := s.pause.Load(); pause != nil {
		(*pause)()
	}
	return s.Store.Take(ctx, now, ops)
}

func newWorld(t *testing.T, change func(*reservation.LedgerConfig)) *world {
	t.Helper()
	w := &world{t: t, store: storetest.NewFaulty(embedded.New(embedded.Config{}), nil)}
	w.slow = &slowStore{Store: w.store}
	l, err := limiter.New(limiter.Config{Store: w.slow})
	if err != nil {
		t.Fatal(err)
	}
	w.limits, err = limiter.NewLimits(limiter.PerDay("tpm", 1000))
	if err != nil {
		t.Fatal(err)
	}
	cfg := reservation.LedgerConfig{Limiter: l}
	if change != nil {
		change(&cfg)
	}
	w.ledger, err = reservation.NewLedger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) request(mode limiter.Mode, tokens int64) *limiter.Request {
	return &limiter.Request{Takes: []limiter.Take{{
		Entity: "key/k", Resource: "gpt", Limits: w.limits, Mode: mode, Consume: []limiter.Consumption{{Limit: "tpm", Amount: tokens * limiter.Milli}},
	}}}
}

func (w *world) decide(req *limiter.Request) *limiter.Decision {
	w.t.Helper()
	if err := w.ledger.Decide(w.t.Context(), time.Now(), req, &w.d); err != nil {
		w.t.Fatal(err)
	}
	return &w.d
}

// balance returns the whole tokens in the bucket.
func (w *world) balance() int64 {
	w.t.Helper()
	w.store.Use(nil)
	d := w.decide(w.request(limiter.Consume, 0))
	if d.Policy != limiter.Unset {
		w.t.Fatalf("the peek was answered by policy: %v", d.Unavailable)
	}
	return d.Statuses[0].Available / limiter.Milli
}

func (w *world) close() {
	w.t.Helper()
	if err := w.ledger.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.closeStore()
}

func (w *world) closeStore() {
	if err := w.store.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
}

// reserve takes an estimate, and returns its settlement to the actual use.
func (w *world) reserve(estimate, used int64) reservation.Settlement {
	w.t.Helper()
	req := w.request(limiter.Consume, estimate)
	if d := w.decide(req); !d.Admitted {
		w.t.Fatalf("reserving %d was denied: %v", estimate, d.Reason)
	}
	return reservation.Settlement{
		Mark:     limiter.Mark{Namespace: limiter.DefaultNamespace, ID: rand.Text(), Owner: rand.Text(), Expires: time.Now().Add(10 * time.Minute)},
		Holdings: w.d.Holdings(nil, req, 0),
		Used:     []limiter.Consumption{{Limit: "tpm", Amount: used * limiter.Milli}},
	}
}

func (w *world) settle(s reservation.Settlement) reservation.Outcome {
	w.t.Helper()
	outcome, err := w.ledger.Settle(w.t.Context(), time.Now(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return outcome
}

// A charge during an outage is applied once, when the store answers again.
func TestChargeIsKept(t *testing.T) {
	t.Parallel()
	for _, fault := range []storetest.Fault{storetest.FailBefore, storetest.Block} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				defer w.close()
				w.store.Use(storetest.Always(fault, storetest.Take))
				if d := w.decide(w.request(limiter.Charge, 300)); !d.Admitted || !d.Kept || d.Policy != limiter.Allow {
					t.Errorf("during the outage: got admitted %v, kept %v, policy %v, want an admission by allow, and the charge queued", d.Admitted, d.Kept, d.Policy)
				}
				if got := w.ledger.Stats(); got.Kept != 1 {
					t.Errorf("stats: got %+v, want one queued", got)
				}
				time.Sleep(3 * time.Minute)
				w.store.Use(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got, want := w.balance(), int64(700); got != want {
					t.Errorf("balance after the outage: got %d, want %d", got, want)
				}
				if diff := cmp.Diff(reservation.LedgerStats{Booked: 1}, w.ledger.Stats()); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A charge waits for a slow store, also beyond the budget of a decision, but not for long. Then it
// continues as queued.
func TestChargeHasTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		takes time.Duration
		kept  bool
	}{{reservation.DefaultWait - time.Millisecond, false}, {reservation.DefaultWait + time.Millisecond, true}, {time.Minute, true}} {
		t.Run(test.takes.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				defer w.close()
				s := w.reserve(500, 200)
				w.slow.takes(test.takes)
				began, wantOutcome := time.Now(), reservation.Settled
				if test.kept {
					wantOutcome = reservation.Kept
				}
				if d := w.decide(w.request(limiter.Charge, 300)); !d.Admitted || d.Kept != test.kept || (d.Policy != limiter.Unset) != test.kept {
					t.Errorf("got admitted %v, policy %v, kept %v, want kept %v", d.Admitted, d.Policy, d.Kept, test.kept)
				}
				if got := w.settle(s); got != wantOutcome {
					t.Errorf("settlement: got outcome %d, want %d", got, wantOutcome)
				}
				if took := time.Since(began); took > 2*reservation.DefaultWait {
					t.Errorf("the calls took %v", took)
				}
				time.Sleep(test.takes)
				w.slow.takes(0)
				if got, want := w.balance(), int64(500); got != want {
					t.Errorf("balance: got %d, want %d", got, want)
				}
			})
		})
	}
}

// While the store hangs, no call waits for long, few tries are under way, and the queue is bounded.
// Queued charges are applied once when the store answers.
func TestHungStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, calls = 500, 700
		w := newWorld(t, func(cfg *reservation.LedgerConfig) { cfg.MaxKept = most })
		defer w.close()
		release := make(chan struct{})
		w.slow.hangs(release)
		var kept, waited int
		for range calls {
			began := time.Now()
			if d := w.decide(w.request(limiter.Charge, 1)); d.Kept {
				kept++
			}
			if took := time.Since(began); took > reservation.DefaultWait {
				t.Fatalf("a call took %v", took)
			} else if took > 0 {
				waited++
			}
		}
		if got := w.ledger.Stats(); kept != most || got.Kept != most || got.Lost != calls-most {
			t.Errorf("%d of %d calls were answered as queued; stats: %+v", kept, most, got)
		}
		if waited > 16 {
			t.Errorf("%d calls waited, want at most 16", waited)
		}
		if got := w.slow.most.Load(); got > 16+64 {
			t.Errorf("%d tries at a time, want at most 80", got)
		}
		close(release)
		time.Sleep(5 * time.Second)
		w.slow.takes(0)
		if got, want := w.balance(), int64(1000-most); got != want {
			t.Errorf("balance: got %d, want %d", got, want)
		}
		if diff := cmp.Diff(reservation.LedgerStats{Booked: most, Lost: calls - most}, w.ledger.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// While many charges wait for a store that fails, new ones are not tried before them.
func TestFailingStoreIsSpared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		w.store.Use(storetest.Always(storetest.FailBefore, storetest.Take))
		for range 200 {
			if d := w.decide(w.request(limiter.Charge, 1)); !d.Kept {
				t.Fatal("a charge was not queued")
			}
		}
		synctest.Wait() // the queue has made its tries, and pauses
		before := w.slow.takings.Load()
		for range 200 {
			w.decide(w.request(limiter.Charge, 1))
		}
		if got := w.slow.takings.Load() - before; got != 0 {
			t.Errorf("%d tries for 200 charges while others wait, want none", got)
		}
		w.store.Use(nil)
		time.Sleep(time.Minute)
		if got := w.balance(); got != 600 {
			t.Errorf("balance: got %d, want 600", got)
		}
	})
}

// Many concurrent callers of a hung store are all answered in time.
func TestHungStoreAndManyCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		release := make(chan struct{})
		w.slow.hangs(release)
		began := time.Now()
		var calls sync.WaitGroup
		for range 300 {
			calls.Go(func() {
				var d limiter.Decision
				if err := w.ledger.Decide(t.Context(), time.Now(), w.request(limiter.Charge, 1), &d); err != nil || !d.Kept {
					t.Errorf("got kept %v, %v", d.Kept, err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(began); took > reservation.DefaultWait {
			t.Errorf("they took %v", took)
		}
		close(release)
		time.Sleep(5 * time.Second)
		w.slow.takes(0)
		if got := w.balance(); got != 700 {
			t.Errorf("balance: got %d, want 700", got)
		}
	})
}

// Close ends a try under way, and reports it as lost.
func TestCloseEndsTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.closeStore()
		w.store.Use(storetest.Always(storetest.Block, storetest.Take))
		w.decide(w.request(limiter.Charge, 1))
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := w.ledger.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 charges") {
			t.Errorf("got %v, want an error that names 1", err)
		}
		if got := w.ledger.Stats(); got.Lost != 1 || got.Kept != 0 {
			t.Errorf("stats: got %+v, want 1 lost and none queued", got)
		}
	})
}

// A charge that may have been applied is not repeated.
func TestUncertainIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		s := w.reserve(500, 100)
		w.store.Use(storetest.Always(storetest.FailAfter, storetest.Take))
		if d := w.decide(w.request(limiter.Charge, 300)); d.Kept || !errors.Is(d.Unavailable, limiter.ErrUncertain) {
			t.Errorf("charge: got kept %v, %v, want uncertain", d.Kept, d.Unavailable)
		}
		if got := w.settle(s); got != reservation.Uncertain {
			t.Errorf("settlement: got outcome %d, want Uncertain", got)
		}
		time.Sleep(time.Minute)
		if got, want := w.balance(), int64(600); got != want {
			t.Errorf("balance: got %d, want %d: each charged once", got, want)
		}
		if diff := cmp.Diff(reservation.LedgerStats{Uncertain: 2}, w.ledger.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// Of a request with a take, only the charges are queued.
func TestMixedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		w.store.Use(storetest.Always(storetest.FailBefore, storetest.Take))
		req := w.request(limiter.Consume, 50)
		req.Takes = append(req.Takes, w.request(limiter.Charge, 300).Takes...)
		if d := w.decide(req); !d.Kept {
			t.Error("the charge was not queued")
		}
		if d := w.decide(w.request(limiter.Consume, 50)); d.Kept {
			t.Error("a request without a charge was queued")
		}
		w.store.Use(nil)
		time.Sleep(time.Minute)
		if got, want := w.balance(), int64(700); got != want {
			t.Errorf("balance: got %d, want %d", got, want)
		}
	})
}

// A settlement is applied once, after any lost answer and any repetition.
func TestSettleOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		plan storetest.Plan
		want reservation.Outcome
	}{
		{"answered", nil, reservation.Settled},
		{"mark not written", storetest.Script(storetest.Settle, storetest.FailBefore), reservation.Kept},
		{"mark uncertain", storetest.Script(storetest.Settle, storetest.FailAfter, storetest.FailAfter, storetest.FailBefore), reservation.Kept},
		{"not applied", storetest.Script(storetest.Take, storetest.FailBefore, storetest.FailBefore), reservation.Kept},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				defer w.close()
				s := w.reserve(500, 120)
				w.store.Use(test.plan)
				if got := w.settle(s); got != test.want {
					t.Errorf("outcome: got %d, want %d", got, test.want)
				}
				time.Sleep(time.Minute)
				again := s
				again.Mark.Owner = "another"
				if got := w.settle(again); got != reservation.Repeated {
					t.Errorf("outcome of another's: got %d, want Repeated", got)
				}
				if got, want := w.balance(), int64(880); got != want {
					t.Errorf("balance: got %d, want %d", got, want)
				}
			})
		})
	}
}

// A settlement in the queue that outlasts its reservation is lost, and the estimate stays charged.
func TestSettlementExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		s := w.reserve(500, 120)
		w.store.Use(storetest.Always(storetest.FailBefore, storetest.Settle))
		if got := w.settle(s); got != reservation.Kept {
			t.Errorf("outcome: got %d, want Kept", got)
		}
		time.Sleep(11 * time.Minute)
		w.store.Use(nil)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(reservation.LedgerStats{Lost: 1}, w.ledger.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		// 500 tokens, less the refill of 12 minutes at 1000 a day.
		if got := w.balance(); got < 500 || got > 509 {
			t.Errorf("balance: got %d, want 500 and the refill", got)
		}
	})
}

// The queue is bounded; charges beyond it are lost and counted.
func TestBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(cfg *reservation.LedgerConfig) { cfg.MaxKept = 2 })
		defer w.close()
		s := w.reserve(100, 0)
		w.store.Use(storetest.Always(storetest.FailBefore))
		for i, want := range []bool{true, true, false} {
			if d := w.decide(w.request(limiter.Charge, 100)); d.Kept != want {
				t.Errorf("charge %d: got kept %v, want %v", i, d.Kept, want)
			}
		}
		if got := w.settle(s); got != reservation.Lost {
			t.Errorf("settlement: got outcome %d, want Lost", got)
		}
		w.store.Use(nil)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(reservation.LedgerStats{Booked: 2, Lost: 2}, w.ledger.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// Close applies the charges that the store accepts in time, and reports the others.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.closeStore()
		w.store.Use(storetest.Always(storetest.FailBefore, storetest.Take))
		for range 200 {
			w.decide(w.request(limiter.Charge, 1))
		}
		go func() {
			time.Sleep(3 * time.Second)
			w.store.Use(nil)
		}()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := w.ledger.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if got, want := w.balance(), int64(800); got != want {
			t.Errorf("balance: got %d, want %d", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.closeStore()
		w.store.Use(storetest.Always(storetest.FailBefore, storetest.Take))
		for range 3 {
			w.decide(w.request(limiter.Charge, 1))
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := w.ledger.Close(ctx); err == nil || !strings.Contains(err.Error(), "3 charges") {
			t.Errorf("close during an outage: got %v, want an error that names 3", err)
		}
		if d := w.decide(w.request(limiter.Charge, 1)); d.Kept {
			t.Error("a closed ledger queues charges")
		}
		if got := w.ledger.Stats(); got.Lost != 4 || got.Kept != 0 {
			t.Errorf("stats: got %+v, want 4 lost and none queued", got)
		}
	})
}

// A queued charge shares no memory with the message of its request.
func TestKeptIsACopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		w.store.Use(storetest.Always(storetest.FailBefore, storetest.Take))
		req := w.request(limiter.Charge, 300)
		w.decide(req)
		req.Takes[0].Consume[0].Amount, req.Takes[0].Entity = 1, "key/other"
		w.store.Use(nil)
		time.Sleep(time.Minute)
		if got, want := w.balance(), int64(700); got != want {
			t.Errorf("balance: got %d, want %d", got, want)
		}
	})
}

func TestNewNeedsALimiter(t *testing.T) {
	t.Parallel()
	if _, err := reservation.NewLedger(reservation.LedgerConfig{}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

// While charges are lost the log has one line a second, with the number of lines left out.
func TestLossesAreLoggedBySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		w := newWorld(t, func(cfg *reservation.LedgerConfig) {
			cfg.MaxKept, cfg.Logger = 1, slog.New(slog.NewTextHandler(&log, nil))
		})
		release := make(chan struct{})
		w.slow.hangs(release)
		for range 2 {
			for range 10 {
				w.decide(w.request(limiter.Charge, 1))
			}
			time.Sleep(time.Second)
		}
		close(release)
		w.close()
		lost := w.ledger.Stats().Lost
		lines := strings.Count(log.String(), "queue of pending charges is full")
		if lost < 18 || lines == 0 || lines > 4 || !strings.Contains(log.String(), "suppressed=8") {
			t.Errorf("%d bookings are lost; the log has %d lines:\n%s", lost, lines, &log)
		}
	})
}
