package lane

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// crowded returns a full bound of turns, and lanes.
func crowded(lanes int) (*crowding, []*Lane) {
	c := &crowding{bound: leastBound, running: leastBound, waiting: make(map[waiter]struct{})}
	all := make([]*Lane, lanes)
	for i := range all {
		all[i] = new(Lane)
	}
	return c, all
}

// order ends a turn for each lane that waits, and returns the lanes in the order of their turns.
func (c *crowding) order(all []*Lane) (turns []int) {
	for {
		c.leave()
		l, waits := c.next().(*Lane)
		if !waits {
			return turns
		}
		turns = append(turns, slices.Index(all, l))
	}
}

// Lanes above the bound wait. Those with a lease come before others, and of four turns one goes to the lane
// that has waited longest.
func TestLanesWaitForTurns(t *testing.T) {
	t.Parallel()
	c, all := crowded(7)
	all[3].held.listed = true
	for _, l := range all {
		if turn, added := c.enter(l); turn || !added {
			t.Errorf("a lane above the bound: turn %t, added %t", turn, added)
		}
	}
	if turn, added := c.enter(all[0]); turn || added || c.waits() != len(all) {
		t.Errorf("the same lane again: turn %t, added %t, %d wait", turn, added, c.waits())
	}
	if got, want := c.order(all), []int{3, 6, 5, 0, 4, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("the order of turns is %v, want %v", got, want)
	}
	if turn, _ := c.enter(all[0]); !turn || c.waits() != 0 {
		t.Errorf("a lane below the bound: turn %t, %d wait", turn, c.waits())
	}
}

// Lanes with a lease leave a turn of four to the others. The lane that has waited longest has each turn where too many wait.
func TestNoLaneWaitsForEver(t *testing.T) {
	t.Parallel()
	c, all := crowded(9)
	for i, l := range all {
		l.held.listed = i > 1
		c.enter(l)
	}
	if got, want := c.order(all), []int{2, 3, 4, 0, 5, 6, 7, 1, 8}; !slices.Equal(got, want) {
		t.Errorf("the order of turns is %v, want %v", got, want)
	}
	c, all = crowded(maxOwed + 3)
	for _, l := range all {
		c.enter(l)
	}
	var got [5]int
	for i := range got {
		c.leave()
		l, _ := c.next().(*Lane)
		got[i] = slices.Index(all, l)
	}
	if want := [...]int{0, 1, 2, 3, maxOwed + 2}; got != want {
		t.Errorf("of %d lanes those have turns: %v, want %v", len(all), got, want)
	}
}

// Long round trips narrow the bound, once for those at a time. Short ones widen it where lanes wait.
func TestBoundFollowsRoundTrips(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	c := &crowding{bound: firstBound, running: firstBound}
	short := func(n int, answered bool) {
		for range n {
			c.judge(now, longTrip, answered)
		}
	}
	short(firstBound, false)
	if c.bound != firstBound {
		t.Errorf("round trips without an answer widen the bound to %d", c.bound)
	}
	if short(firstBound/widenPart, true); c.bound != firstBound+1 {
		t.Errorf("after %d short round trips the bound is %d, want %d", firstBound/widenPart, c.bound, firstBound+1)
	}
	c.running--
	if short(firstBound, true); c.bound != firstBound+1 {
		t.Errorf("the bound is %d, though no lane can wait, want %d", c.bound, firstBound+1)
	}
	for range 50 {
		c.judge(now, longTrip+1, false)
	}
	if want := firstBound + 1 - (firstBound+1)/8; c.bound != want {
		t.Errorf("after 50 long round trips at a time the bound is %d, want %d", c.bound, want)
	}
	for i := range 100 {
		c.judge(now.Add(time.Duration(i)*time.Second), time.Second, true)
	}
	if c.bound != leastBound {
		t.Errorf("the bound fell to %d, want %d", c.bound, leastBound)
	}
}

// A server is asked for three times what it can do, for a minute. Its round trips stay short, and it does all that it can.
func TestServerIsAskedForMoreThanItCanDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each, lasts = time.Millisecond, time.Minute
		c := &crowding{bound: firstBound, waiting: make(map[waiter]struct{})}
		var mu sync.Mutex
		var free time.Time // when the server has done what it was sent
		var done, slow atomic.Int64
		var send func()
		send = func() {
			mu.Lock()
			sent := time.Now()
			if free.Before(sent) {
				free = sent
			}
			free = free.Add(each)
			took := free.Sub(sent)
			mu.Unlock()
			time.Sleep(took)
			if done.Add(1); took > 2*longTrip {
				slow.Add(1)
			}
			c.judge(time.Now(), took, true)
			c.leave()
			for l := c.next(); l != nil; l = c.next() {
				go send()
			}
		}
		for began := time.Now(); time.Since(began) < lasts; time.Sleep(each / 3) {
			if turn, _ := c.enter(new(Lane)); turn {
				go send()
			}
		}
		if most := int64(lasts / each); done.Load() < most*99/100 || slow.Load() > most/100 {
			t.Errorf("the server did %d of %d; %d round trips were long", done.Load(), most, slow.Load())
		}
		for c.waits() > 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if c.running != 0 {
			t.Errorf("%d turns have no end", c.running)
		}
	})
}

// A lane without a turn sends nothing, and ends requests that waited for too long. An owed one waits on, is never
// lost, and is sent with the turn.
func TestOwedRequestsWaitForATurn(t *testing.T) {
	t.Parallel()
	lanes, l, ask, now := fresh(t)
	c, _ := crowded(0)
	lanes.crowding, l.crowd = c, c
	l.share(unleased{})
	r, owed := ask(), ask()
	l.closer.endLate(owed, l.estimator.estimate(owed), true)
	for _, o := range l.owed {
		l.enter(o, *now)
	}
	l.owed = nil
	for range 100 {
		*now = now.Add(l.host.cfg.Budget)
		if m, _ := l.step(*now, false); m != nil || !l.running {
			t.Fatalf("a lane without a turn has the message %+v, or is not run with its turn", m)
		}
	}
	if r.state != over || r.Err == nil {
		t.Errorf("a request that waited %v is %v", 100*l.host.cfg.Budget, r.state)
	}
	m, _ := l.step(*now, true)
	if m == nil {
		t.Fatalf("with its turn the lane sends nothing: %d requests wait, %d for capacity", len(l.queue), len(l.later))
	}
	if b := m.carries(); b == nil || len(b.actors) != 1 || b.actors[0].state != sentOwed {
		t.Errorf("with its turn the lane sends %+v, want a write for the owed request", m)
	}
}

// Requests end at once where the server has not answered for a second: those that wait for a turn, and those that come.
func TestNoLaneWaitsForASilentServer(t *testing.T) {
	t.Parallel()
	lanes, l, ask, now := fresh(t)
	lanes.cfg.Budget = time.Hour
	c, _ := crowded(0)
	lanes.crowding, l.crowd = c, c
	before := ask()
	lanes.health.sent(*now, time.Second)
	for range 20 {
		*now = now.Add(silence / 10)
		lanes.health.silent(*now)
	}
	if l.step(*now, false); before.state != over || !errors.Is(before.Err, errSilent) {
		t.Errorf("a request that waited is %v, %v", before.state, before.Err)
	}
	if r := ask(); r.state != over || !errors.Is(r.Err, errSilent) {
		t.Errorf("a request that comes is %v, %v", r.state, r.Err)
	}
}

// Messages to a part of the server that does not answer take no turns of the others.
func TestPartsHaveTurnsOfTheirOwn(t *testing.T) {
	t.Parallel()
	lanes := New(Config{Loop: still{}, Now: time.Now, MaxLanes: 100, Crowded: true, Parts: schema.IndexPartitions, Logger: slog.New(slog.DiscardHandler)})
	byPart := make(map[int]*Lane)
	for i := 0; len(byPart) < 2; i++ {
		site := &Site{Namespace: "AbCdEfGhIj0", Bucket: limiter.BucketKey{Entity: strconv.Itoa(i), Resource: "r"}}
		part, _ := schema.Home(site.Key(0))
		byPart[part] = lanes.hold(site, 0)
	}
	both := make([]*Lane, 0, len(byPart))
	for _, l := range byPart {
		both = append(both, l)
	}
	for range firstBound >> partBound {
		if turn, _ := both[0].crowd.enter(both[0]); !turn {
			t.Fatal("a lane waits below the bound")
		}
	}
	if turn, _ := both[0].crowd.enter(both[0]); turn {
		t.Error("a lane has a turn above the bound of its part")
	}
	if turn, _ := both[1].crowd.enter(both[1]); !turn {
		t.Error("a lane of another part has no turn")
	}
	if n := lanes.Waiting(); n != 1 {
		t.Errorf("%d lanes wait, want 1", n)
	}
}
