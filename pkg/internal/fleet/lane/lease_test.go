package lane

import (
	"testing"
	"time"
)

// A request waits for a lease write that is due. While none is sent, as after a lost reply, the centre
// decides it.
func TestNoRequestWaitsForARestingLease(t *testing.T) {
	l := bench(t, 900, 1000)
	l.host.cfg.Leases = true
	now := l.host.cfg.Now()
	serve := func() (waits bool) {
		r := ofTokens(l.view.state.Limits, 1)
		r.Asks = true
		l.view.advance(l.view.now + 1)
		waits, done := l.lessee.decide(r, now)
		if done {
			t.Fatal("a request is decided by a lease that is not there")
		}
		return waits
	}
	for range 20 {
		serve()
	}
	if !serve() {
		t.Fatal("a request does not wait for the grant that is due")
	}
	l.held.rest = now.Add(time.Millisecond)
	if serve() {
		t.Error("a request waits for a lease that is left alone")
	}
}
