package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// sleeper is a machine in a bubble, that sleeps now and then.
type sleeper struct {
	mu     sync.Mutex
	start  time.Time
	asleep time.Time // since when; zero = it is awake
	slept  time.Duration
}

// now is the reading of the machine's clock. A process on the machine notices a sleep
// only after it wakes.
func (m *sleeper) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now()
	if !m.asleep.IsZero() {
		at = m.asleep
	}
	return clocktest.At(at.UnixNano(), 1+int64(at.Sub(m.start)-m.slept))
}

func (m *sleeper) sleep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asleep = time.Now()
}

func (m *sleeper) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slept += time.Since(m.asleep)
	m.asleep = time.Time{}
}

// openSleeper builds a replica on a machine.
func openSleeper(t *testing.T, m *sleeper, client dynamo.Client, text string) replica {
	t.Helper()
	log := new(proctest.LogBuffer)
	s, err := server.NewOn(t.Context(), programtest.Parsed(t, text), slog.New(slog.NewTextHandler(log, nil)), func(s *server.Service, ctx context.Context) error {
		s.Clocks = limiter.NewClocks(m.now)
		return s.UseTable(ctx, client, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return replica{s, log}
}

// A replica holds a lease, and its machine sleeps. Another replica frees the lease, and
// the bucket is full again. At one moment both together admit the content of the bucket,
// and no more.
func TestALeaseDoesNotOutliveASleep(t *testing.T) {
	const text = `
limits: {system: {rpm: {rate: 100/second, burst: 1000}}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		m := &sleeper{start: time.Now()}
		a, b := openSleeper(t, m, db, text), startReplica(t, db, text)
		defer b.stop()
		metric := func(r replica, name string) int {
			_, text := r.do(t, http.MethodGet, "/metrics", "")
			return tableMetricOf(t, text, name)
		}
		for renewed := -1; renewed < 2 || metric(a, "lease_renewals_total") == renewed; { // until it has just got more
			renewed = metric(a, "lease_renewals_total")
			if a.ask(t, 1); time.Since(m.start) > time.Minute {
				t.Fatal("nothing is leased")
			}
			time.Sleep(time.Millisecond) // of the bubble's clock, as below
		}
		m.sleep()
		for range 200 { // b sees the lease for its term, and frees it; then the bucket fills up
			time.Sleep(time.Second)
			b.ask(t, 1)
		}
		if n := metric(b, "lease_reaps_total"); n != 1 {
			t.Fatalf("replica b freed %d leases, want 1", n)
		}
		m.wake()
		admitted, begin := 0, time.Now()
		for _, r := range []replica{a, b} { // at one moment, but for calls that wait for a write
			for range 1000 {
				if ok, _ := r.ask(t, 1); ok {
					admitted++
				}
			}
		}
		took := time.Since(begin)
		if most := 1000 + int(took/(10*time.Millisecond)); admitted > most || admitted < 900 {
			t.Errorf("%d requests were admitted within %v by a bucket of 1000, want at most %d", admitted, took, most)
		}
		a.stop()
	})
}
