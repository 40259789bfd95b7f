package lane

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fresh is a lane with leases that has seen nothing of its item, and takes of one token on
// 1,000 a second. Its messages go nowhere.
func fresh(t *testing.T) (s *Lanes, l *Lane, ask func() *Request, now *time.Time) {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.Custom("l", 1000, 1000, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(testTime)
	clock := func() time.Time { return at }
	s = New(Config{
		Loop: still{}, Now: clock, Clock: awsdb.NewClock(clock, 0), MaxLanes: 1, ShardUnits: 1000, Attempt: time.Second, Budget: time.Second,
		Leases: true, Logger: slog.New(slog.DiscardHandler),
	})
	site := &Site{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}
	l = s.hold(site, 0)
	return s, l, func() *Request {
		r := ofTokens(limits, 1)
		r.Site, r.Wait, r.At, r.Asks, r.Deadline = site, NewWait(1), at.UnixMilli(), true, at.Add(15*time.Millisecond)
		s.Send(r)
		return r
	}, &at
}

// A few calls at once create the item and lease it in one write. A lone call takes its token.
func TestTheFirstWriteLeases(t *testing.T) {
	for name, tt := range map[string]struct {
		calls  int
		leases bool
	}{"one call": {1, false}, "some calls": {3, true}} {
		t.Run(name, func(t *testing.T) {
			_, l, ask, now := fresh(t)
			for range tt.calls {
				ask()
			}
			f, _ := l.step(*now)
			if f == nil || f.write == nil || !f.write.Creates() {
				t.Fatalf("got the message %+v, want a write that creates the item", f)
			}
			if got := f.lease != nil; got != tt.leases {
				t.Errorf("it leases: %v, want %v", got, tt.leases)
			}
			if got, want := len(f.actors), map[bool]int{false: 1}[tt.leases]; got != want {
				t.Errorf("it takes for %d calls, want %d", got, want)
			}
		})
	}
}

// What is owed on an item that no one created waits for more calls, and not for long.
func TestOwedWaitsForTheFirstLease(t *testing.T) {
	s, l, ask, now := fresh(t)
	late := ask()
	s.DecideLate([]*Request{late}, func([]*plan.Request) bool { return true })
	if f, _ := l.step(*now); f != nil {
		t.Fatalf("got the message %+v at once", f)
	}
	*now = now.Add(newWait)
	if f, _ := l.step(*now); f == nil || f.lease != nil || len(f.actors) != 1 {
		t.Errorf("got the message %+v, want the write of what is owed", f)
	}
}

// After a lease write without a reply the item is read at once, and then a lease is asked for.
// Until then calls do not wait for a lease.
func TestAfterALostLeaseWrite(t *testing.T) {
	_, l, ask, now := fresh(t)
	seen := bench(t, 500, 1000).view
	l.view.known, l.view.state, l.view.quick, l.view.head, l.view.sent = true, seen.state, seen.quick, seen.head, *now
	r := ask()
	for range 2 {
		ask()
	}
	f, _ := l.step(*now)
	if f == nil || f.lease == nil {
		t.Fatalf("got the message %+v, want a lease write", f)
	}
	l.sender.land(f)
	l.lessee.concludeLease(f.lease, true, *now)
	if waits, _ := l.lessee.serve(r, *now); waits {
		t.Error("a call waits for a lease that is not asked for")
	}
	if f, _ := l.step(*now); f == nil || f.write != nil {
		t.Errorf("got the message %+v, want a read", f)
	}
	if l.lessee.rests(*now) {
		t.Error("no lease is asked for after the read")
	}
}

// Items of form 1 are created without leases.
func TestTheFirstWriteOfFormOneLeasesNothing(t *testing.T) {
	_, l, ask, now := fresh(t)
	l.host.cfg.Form = func(string) int { return schema.FormOld }
	for range 3 {
		ask()
	}
	if f, _ := l.step(*now); f == nil || f.lease != nil {
		t.Errorf("got the message %+v, want a write without a lease", f)
	}
}
