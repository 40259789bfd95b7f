package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// unleased is a lane without a lease.
type unleased struct{}

func (unleased) serve(*Request, time.Time) (s served, due bool) { return byItem, false }
func (unleased) answer(*Request)                                {}
func (unleased) release(*Request, bool)                         {}
func (unleased) seen(time.Time)                                 {}
func (unleased) due(time.Time) (m message, waits bool)          { return nil, false }
func (unleased) missed(miss, time.Time)                         {}
func (unleased) cede()                                          {}
func (unleased) leave()                                         {}

// A lane without a lease joins the requests that come while a write is under way, plans those of a write
// that was refused anew, and denies by the last state.
func TestGroupCommitNeedsNoLease(t *testing.T) {
	_, l, ask, now := fresh(t)
	l.share(unleased{})
	next := func(requests int) *write {
		t.Helper()
		*now = now.Add(Least)
		m, _ := l.step(*now, true)
		w, ok := m.(*write)
		if !ok || len(w.actors) != requests {
			t.Fatalf("got the message %+v, want a write for %d requests", m, requests)
		}
		return w
	}
	ends := func(w *write, refused bool, image *schema.Bucket) {
		l.sender.arrived(w)
		w.came(image, refused, *now)
	}
	first := ask()
	w := next(1)
	const together = 20
	var waiting [together]*Request
	for i := range waiting {
		waiting[i] = ask()
	}
	if m, _ := l.step(*now, true); m != nil {
		t.Fatalf("got the message %+v beside the write that creates the item", m)
	}
	created := w.write.After()
	if ends(w, false, created); first.state != over || !first.Admitted {
		t.Errorf("the first request is %v, admitted: %t", first.state, first.Admitted)
	}
	w = next(together)
	other := *created // of an exact write of another replica
	other.Serial++
	other.Shard.Epoch++
	ends(w, true, &other)
	w = next(together)
	ends(w, false, w.write.After())
	for i, r := range waiting {
		if r.state != over || !r.Admitted {
			t.Errorf("request %d is %v, admitted: %t", i, r.state, r.Admitted)
		}
	}
	large := ofTokens(first.Limits, 1001)
	large.Site, large.Wait, large.At = first.Site, NewWait(1), now.UnixMilli()
	l.enter(large, *now)
	if m, _ := l.step(*now, true); m != nil || large.state != over || large.Admitted {
		t.Errorf("a request beyond the limit is %v, admitted: %t; message %+v", large.state, large.Admitted, m)
	}
	if l.held.holder != nil || len(l.queue)+len(l.out) > 0 {
		t.Errorf("%d requests wait, %d messages are under way, and the lease is %v", len(l.queue), len(l.out), l.held.holder)
	}
}
