package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Where tokens are short, the oldest request makes room for a new one if its reply may come
// after its deadline. Otherwise, and where its tokens are not enough, the new one is denied.
func TestTheOldestMakesRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		tokens   int64
		displace bool
	}{
		"no time for a reply":  {9 * time.Millisecond, 1, true},
		"time for a reply":     {100 * time.Millisecond, 1, false},
		"not enough in itself": {9 * time.Millisecond, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t, 30, 1000)
			now := l.host.cfg.Now()
			l.view.sent = now
			l.pace.Sent(now)
			l.peers.Observe(ids(9, 1), 5, now)
			l.peers.Observe(ids(9, 2), 5, now)
			l.wait(30)
			old, r := l.queue[0], ofTokens(l.view.state.Limits, tt.tokens)
			old.Deadline = now.Add(tt.patience)
			if turned := l.turnAway(r, now); turned == tt.displace {
				t.Errorf("the new request is turned away: %v, want %v", turned, !tt.displace)
			}
			if denied := old.state == over && old.Spends[0].Exceeded && !old.Admitted; denied != tt.displace {
				t.Errorf("the oldest is denied: %v, want %v", denied, tt.displace)
			}
			if want := 30 - map[bool]int{true: 1}[tt.displace]; len(l.queue) != want {
				t.Errorf("%d requests wait, want %d", len(l.queue), want)
			}
		})
	}
}

// A request that would be denied late is denied at its arrival. Where the item has enough for it, the denial is one by
// the lane's share, and its answer has the tokens of the item. So its caller comes again soon.
func TestADenialByAShare(t *testing.T) {
	for name, tt := range map[string]struct {
		tokens, left int64 // left in millitokens
		byShare      bool
	}{"the item has enough": {160, 101*limiter.Milli - 1, true}, "it has too little": {100, 100 * limiter.Milli, false}} {
		t.Run(name, func(t *testing.T) {
			l, now := far(t, tt.tokens, 2)
			l.pace = Pace{}
			l.pace.Reply(20 * time.Millisecond)
			r := ofTokens(l.view.state.Limits, 101)
			r.Deadline = now.Add(15 * time.Millisecond)
			if !l.turnAway(r, now) || r.Admitted {
				t.Fatal("the request is not denied at its arrival")
			}
			if sp := r.Spends[0]; r.ByShare != tt.byShare || !sp.Exceeded || sp.Left.Tokens != tt.left {
				t.Errorf("by the share: %t, %d millitokens left; want %t and %d", r.ByShare, sp.Left.Tokens, tt.byShare, tt.left)
			}
		})
	}
}

// A late denial tells what the item has left, and not what this lane may have of it.
func TestALateDenialTellsWhatTheItemHas(t *testing.T) {
	l, _ := far(t, 160, 2)
	l.fly()
	for wants, left := range map[int64]int64{101: 101*limiter.Milli - 1, 160: 159 * limiter.Milli} {
		told := l.estimator.estimate(ofTokens(l.view.state.Limits, wants))
		if sp := told.Spends[0]; told.Admitted || sp.Left.Tokens != left {
			t.Errorf("%d tokens: admitted %t with %d millitokens left, want a denial with %d", wants, told.Admitted, sp.Left.Tokens, left)
		}
	}
}

// ids are ids of the n-th writes of some replicas, from number 10 on.
func ids(replicas uint32, n uint64) (ids []schema.WriteID) {
	for i := range replicas {
		ids = append(ids, schema.NewWriteID(10+i, n))
	}
	return ids
}
