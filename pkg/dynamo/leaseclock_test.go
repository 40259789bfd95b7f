package dynamo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// With a clock that cannot be trusted a lease is served to its end, and nothing is
// leased, reported or returned.
func TestLeasesWithoutATrustedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := bucketTable(t)
		m := newMachine(db, 0)
		s := m.store(t, func(cfg *Config) { cfg.Leases = true })
		defer closeStores(t, s)
		take := func(entity string) (bool, error) {
			return s.Take(t.Context(), m.now(), []limiter.Op{opOn(t, entity, limiter.PerDay("l", 10_000), limiter.Spend{Take: limiter.Milli})})
		}
		for range 50 {
			if ok, err := take("e"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			synctest.Wait()
		}
		if s.Stats().Leases != 1 {
			t.Fatalf("%+v, want a lease", s.Stats())
		}
		m.liar()
		if _, err := take("other"); err != nil {
			t.Fatal(err)
		}
		if _, err := take("other"); err != nil && s.Stats().Halts == 0 {
			t.Fatal(err)
		}
		before := s.Stats()
		served := 0
		for end := time.Now().Add(leaseTerm); time.Now().Before(end); time.Sleep(90 * time.Millisecond) {
			if ok, err := take("e"); ok && err == nil {
				served++
			}
		}
		after := s.Stats()
		if before.Halts != 1 || served < 10 || after.Served-before.Served < 10 {
			t.Errorf("%d served of a lease, halted %d times: %+v", served, before.Halts, after)
		}
		if after.Granted != before.Granted || after.Renewed != before.Renewed || after.Returned != before.Returned {
			t.Errorf("leases changed: %+v, before %+v", after, before)
		}
		m.lie = nil
		for range 5 {
			_, _ = take("e") // the truth is found out
		}
		time.Sleep(leaseTerm)
		if got := s.Stats(); got.Leases != 0 || got.Returned != 1 {
			t.Errorf("%+v, want the lease returned when the clock is trusted again", got)
		}
	})
}
