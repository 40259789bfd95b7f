package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
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

// ids are ids of the n-th writes of some replicas, from number 10 on.
func ids(replicas uint32, n uint64) (ids []schema.WriteID) {
	for i := range replicas {
		ids = append(ids, schema.NewWriteID(10+i, n))
	}
	return ids
}
