package reservation_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// In a request with a take, a charge that may have been applied is not repeated.
func TestUncertainOfAMixedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		w.store.Use(storetest.Always(storetest.FailAfter, storetest.Take))
		req := w.request(limiter.Consume, 50)
		req.Takes = append(req.Takes, w.request(limiter.Charge, 300).Takes...)
		if d := w.decide(req); d.Kept {
			t.Error("a charge that may have been applied is queued")
		}
		time.Sleep(time.Minute)
		if got, want := w.balance(), int64(650); got != want {
			t.Errorf("balance: got %d, want %d: it was charged once", got, want)
		}
		if diff := cmp.Diff(reservation.LedgerStats{Uncertain: 1}, w.ledger.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// A first try with an unknown outcome, after its caller was answered, is neither repeated nor
// counted as lost.
func TestALateTryOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.close()
		w.slow.takes(2 * reservation.DefaultWait)
		w.store.Use(storetest.Always(storetest.FailAfter, storetest.Take))
		if d := w.decide(w.request(limiter.Charge, 300)); !d.Kept {
			t.Error("the caller waits for the end of the try")
		}
		time.Sleep(time.Minute)
		if diff := cmp.Diff(reservation.LedgerStats{Uncertain: 1}, w.ledger.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		if got, want := w.balance(), int64(700); got != want {
			t.Errorf("balance: got %d, want %d: it was charged once", got, want)
		}
	})
}
