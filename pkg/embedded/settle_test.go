package embedded

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// markOf returns a mark that expires ms after t0.
func markOf(id, owner string, ms int64) limiter.Mark {
	return limiter.Mark{Namespace: "default", ID: id, Owner: owner, Expires: t0.Add(time.Duration(ms) * time.Millisecond)}
}

func mustSettle(t *testing.T, s *Store, now time.Time, want bool, m limiter.Mark) {
	t.Helper()
	got, err := s.Settle(t.Context(), now, m)
	if err != nil || got != want {
		t.Fatalf("Settle of %q by %q %v after t0: got %t, %v; want %t", m.ID, m.Owner, now.Sub(t0), got, err, want)
	}
}

func wantMarks(t *testing.T, s *Store, when string, want int64) {
	t.Helper()
	if got := s.Marks(); got != want {
		t.Errorf("%s: %d marks, want %d", when, got, want)
	}
}

// A mark is dropped when it has expired by the latest time of a call, not by the sweeper's clock.
// No caller settles it by an earlier time then.
func TestMarksAreKeptUntilTheyExpire(t *testing.T) {
	s := newStore(t, Config{Now: func() time.Time { return t0.Add(1000 * time.Hour) }})
	mustSettle(t, s, t0, true, markOf("r", "a", 1000))
	mustSettle(t, s, t0.Add(999*time.Millisecond), true, markOf("r2", "a", 2000))
	mustSettle(t, s, t0.Add(-time.Hour), false, markOf("r", "b", 1000))
	s.sweepMarks(0, markShards)
	wantMarks(t, s, "before the first expires", 2)
	mustSettle(t, s, t0.Add(1000*time.Millisecond), false, markOf("r3", "a", 1000))
	s.sweepMarks(0, markShards)
	wantMarks(t, s, "when it has expired", 1)
	for _, owner := range []string{"a", "b"} {
		mustSettle(t, s, t0, false, markOf("r", owner, 1000))
	}
	mustSettle(t, s, t0, true, markOf("r2", "a", 2000))
	wantMarks(t, s, "in the end", 1)
}

func TestSweeperDropsMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{SweepInterval: time.Minute})
		for i := range 1000 {
			mustSettle(t, s, t0, true, markOf(fmt.Sprint("r", i), "a", 1))
		}
		mustSettle(t, s, t0.Add(time.Millisecond), true, markOf("last", "a", 2))
		time.Sleep(2 * time.Minute) // of the bubble's clock
		wantMarks(t, s, "two sweeps later", 1)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantMarks(t, s, "closed", 0)
	})
}

// While marks expire and are swept, no reservation is settled twice, with clocks before and behind.
func TestSettlingAgainstTheSweeper(t *testing.T) {
	s := newStore(t, Config{})
	const reservations, callers = 2000, 4
	won := make([]atomic.Int64, reservations)
	var now atomic.Int64
	var g sync.WaitGroup
	for caller := range callers {
		g.Go(func() {
			for i := range reservations {
				ms := now.Add(int64(i % 2)) // the reservations expire while they are settled
				m := markOf(fmt.Sprint("r", i), strconv.Itoa(caller), int64(2*i))
				ok, err := s.Settle(t.Context(), t0.Add(time.Duration(ms-int64(caller)*20)*time.Millisecond), m)
				if err != nil {
					t.Errorf("reservation %d: %v", i, err)
				}
				if ok {
					won[i].Add(1)
				}
				s.sweepMarks(0, markShards)
			}
		})
	}
	g.Wait()
	settled := 0
	for i := range won {
		if n := won[i].Load(); n > 1 {
			t.Errorf("reservation %d was settled %d times", i, n)
		} else if n == 1 {
			settled++
		}
	}
	if left := s.Marks(); settled == 0 || left == int64(settled) {
		t.Errorf("%d settled, %d marks left: the case shows nothing", settled, left)
	}
}

// At the maximum new reservations are refused, those that are marked are known, and
// expired ones make room.
func TestMaxMarks(t *testing.T) {
	s := newStore(t, Config{MaxMarks: 2})
	mustSettle(t, s, t0, true, markOf("r1", "a", 1))
	mustSettle(t, s, t0, true, markOf("r2", "a", 1000))
	won, err := s.Settle(t.Context(), t0, markOf("r3", "a", 1000))
	if won || !errors.Is(err, limiter.ErrUnavailable) || !strings.Contains(err.Error(), "maximum of 2 marks") {
		t.Errorf("got %t, %v; want ErrUnavailable with the maximum", won, err)
	}
	mustSettle(t, s, t0, true, markOf("r1", "a", 1))
	mustSettle(t, s, t0, false, markOf("r2", "b", 1000))
	wantMarks(t, s, "full", 2)
	mustSettle(t, s, t0.Add(time.Millisecond), false, markOf("r1", "b", 1))
	s.sweepMarks(0, markShards)
	mustSettle(t, s, t0, true, markOf("r3", "a", 1000))
}
